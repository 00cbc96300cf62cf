"""The size of a server for its GPUs. All sizes in bytes."""

from __future__ import annotations

from bfinfra.model.gpus import GIB, vgpu_profile
from bfinfra.model.units import GRAIN

PER_GPU = 4  # virtual CPUs


def cpus(gpus: int) -> int:
    """Four CPUs per GPU, at least four."""
    return max(PER_GPU, PER_GPU * gpus)


def memory(gpu_memory: int) -> int:
    """One and a half times the GPUs' memory, rounded as vSphere needs it."""
    wanted = gpu_memory * 3 // 2
    return -(-wanted // GRAIN) * GRAIN


def mmio(gpu_memory: int) -> int:
    """Twice the next power of two (in GiB) that holds the GPUs' memory."""
    gib = max(1, -(-gpu_memory // GIB))
    return 2 * (1 << (gib - 1).bit_length()) * GIB


def of_profile(profile: str) -> int | None:
    """The memory of a vGPU of a profile; None if its name gives none."""
    found = vgpu_profile(profile)
    return found.memory if found else None
