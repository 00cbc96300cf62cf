"""The memory of vGPUs, by the names of their profiles."""

from __future__ import annotations

import pytest

from bfinfra.model.gpus import GIB, VgpuProfile, vgpu_profile


@pytest.mark.parametrize(
    ("name", "memory", "slices"),
    [
        ("grid_v100d-8q", 8 * GIB, 0),
        ("grid_a100-40c", 40 * GIB, 0),
        ("nvidia_a40-24q", 24 * GIB, 0),
        ("nvidia_a100-3-20c", 20 * GIB, 3),
        ("nvidia_a100-1-5cme", 5 * GIB, 1),
        ("grid_t4-1b4", GIB, 0),
        ("grid_m10-0q", GIB // 2, 0),
    ],
)
def test_a_profiles_name_gives_the_size_of_its_vgpus(name, memory, slices):
    assert vgpu_profile(name) == VgpuProfile(memory, slices)


@pytest.mark.parametrize("name", ["", "mine", "a100-40c-x", "40c"])
def test_a_name_of_another_form_gives_none(name):
    assert vgpu_profile(name) is None
