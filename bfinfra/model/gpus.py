"""Memory of graphics cards and of vGPUs, in bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

NVIDIA = 0x10DE
GIB = 1 << 30
SLICES = 7  # of a card, by MIG
TOLERANCE = 1.07  # cards report somewhat less memory than the GiB in their name
_NVIDIA_GIB = {
    0x102D: 12,  # K80, each of the two
    0x13BD: 8,  # M10, each of the four
    0x13F2: 8,  # M60, each of the two
    0x15F7: 12,  # P100 PCIe 12 GB
    0x15F8: 16,  # P100 PCIe 16 GB
    0x15F9: 16,  # P100 SXM2
    0x1B38: 24,  # P40
    0x1BB3: 8,  # P4
    0x1DB1: 16,  # V100 SXM2 16 GB
    0x1DB4: 16,  # V100 PCIe 16 GB
    0x1DB5: 32,  # V100 SXM2 32 GB
    0x1DB6: 32,  # V100 PCIe 32 GB
    0x1DF6: 32,  # V100S PCIe
    0x1EB8: 16,  # T4
    0x20B0: 40,  # A100 SXM4 40 GB
    0x20B2: 80,  # A100 SXM4 80 GB
    0x20B5: 80,  # A100 PCIe 80 GB
    0x20B7: 24,  # A30
    0x20F1: 40,  # A100 PCIe 40 GB
    0x2235: 48,  # A40
    0x2236: 24,  # A10
    0x2230: 48,  # RTX A6000
    0x2321: 94,  # H100 NVL
    0x2330: 80,  # H100 SXM5
    0x2331: 80,  # H100 PCIe
    0x25B6: 16,  # A2, and A16 each of the four
    0x26B5: 48,  # L40
    0x26B9: 48,  # L40S
    0x27B8: 24,  # L4
}
MEMORY: Mapping[tuple[int, int], int] = {(NVIDIA, device): gib * GIB for device, gib in _NVIDIA_GIB.items()}
"""(vendor, device) → bytes, as vendors publish it. For a card that isn't here, the spec gives it."""

_PROFILE = re.compile(r"(?:-(\d+))?-(\d+)(?:[a-z]+\d*)?$")
HALF = GIB // 2  # vGPUs of 512 MiB have a 0 in their names: grid_m10-0q


class VgpuProfile(NamedTuple):
    """The size that a vGPU profile's name gives. `memory`: bytes; `slices`: of a card that MIG divides, 0
    where cards share their time instead.
    """

    memory: int
    slices: int = 0


def vgpu_profile(name: str) -> VgpuProfile | None:
    """Read a vGPU profile's name: `grid_v100d-8q` has 8 GiB, `nvidia_a100-3-20c` 20 GiB and three slices.
    None where it gives no size.
    """
    found = _PROFILE.search(name)
    return VgpuProfile(int(found[2]) * GIB or HALF, int(found[1] or 0)) if found else None


def vgpus(card: int, profile: str) -> int:
    """Return how many vGPUs of a profile a card of this memory (bytes) holds; 0 if the profile's name tells
    no size.
    """
    found = vgpu_profile(profile)
    if found is None:
        return 0
    return SLICES // found.slices if found.slices else int(card * TOLERANCE / found.memory)
