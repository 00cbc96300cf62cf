"""The sandbox publishes the parts of GPUs (MIG) as NVIDIA's DRA driver does, and nvidia-smi lists them."""

from __future__ import annotations

import pytest

from bfinfra.sandbox.kubernetes.mig_profiles import placed
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.nvidia_dra import GPU, devices, gpu_uuid
from bfinfra.sandbox.kubernetes.nvidia_smi import Given, printed

A100 = "NVIDIA-A100-PCIE-40GB"


@pytest.mark.parametrize(
    ("product", "wanted", "starts"),
    [
        (A100, {"1g.5gb": 7}, [("1g.5gb", start) for start in range(7)]),
        (
            A100,
            {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
            [("1g.5gb", 0), ("1g.5gb", 1), ("2g.10gb", 2), ("3g.20gb", 4)],
        ),
        (A100, {"4g.20gb": 1, "2g.10gb": 1, "1g.5gb": 1}, [("4g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6)]),
        (A100, {"1g.10gb": 4}, [("1g.10gb", start) for start in (0, 2, 4, 6)]),
        ("NVIDIA-A100-SXM4-80GB", {"3g.40gb": 2}, [("3g.40gb", 0), ("3g.40gb", 4)]),
        ("NVIDIA-A30", {"1g.6gb": 4}, [("1g.6gb", start) for start in range(4)]),
        (A100, {}, []),
    ],
)
def test_parts_are_placed_on_memory_slices(product, wanted, starts):
    assert [(part.name, start) for part, start in placed(product, wanted) or ()] == starts


@pytest.mark.parametrize(
    ("product", "wanted"),
    [
        (A100, {"1g.5gb": 8}),
        (A100, {"3g.20gb": 2, "1g.5gb": 1}),
        (A100, {"1g.5gb+me": 2}),
        (A100, {"7g.80gb": 1}),
        ("NVIDIA-A30", {"1g.6gb": 5}),
        ("NVIDIA-L40S", {"1g.6gb": 1}),
    ],
)
def test_a_card_does_not_take_what_does_not_fit(product, wanted):
    assert placed(product, wanted) is None


def test_a_part_is_published_in_place_of_its_card():
    """Names, attributes and capacity after deviceinfo.go and mig.go of kubernetes-sigs/dra-driver-nvidia-gpu."""
    gpus = Gpus(1, product=A100, driver="580.95.05", profiles=(("2g.10gb", 1), ("1g.5gb+me", 1)))
    part, small = devices(GPU, "n1", gpus)
    assert (part["name"], small["name"]) == ("gpu-0-mig-2g10gb-14-4", "gpu-0-mig-1g5gb-me-20-6")
    uuid = part["attributes"].pop("uuid")["string"]
    assert uuid.startswith("MIG-")
    assert part["attributes"] == {
        "type": {"string": "mig"},
        "parentUUID": {"string": gpu_uuid("n1", 0)},
        "profile": {"string": "2g.10gb"},
        "productName": {"string": "NVIDIA A100-PCIE-40GB"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Ampere"},
        "cudaComputeCapability": {"version": "8.0.0"},
        "driverVersion": {"version": "580.95.5"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:02:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    }
    assert {name: each["value"] for name, each in part["capacity"].items()} == {
        "multiprocessors": "28",
        "copyEngines": "2",
        "decoders": "1",
        "encoders": "0",
        "jpegEngines": "0",
        "ofaEngines": "0",
        "memorySlice4": "1",
        "memorySlice5": "1",
        "memory": "9856Mi",
    }


def test_nvidia_smi_lists_parts_below_their_cards():
    given = [Given("MIG-a", "GPU-1", "1g.5gb"), Given("GPU-2"), Given("MIG-b", "GPU-1", "3g.20gb")]
    lines, fine = printed(["-L"], given, Gpus(2, product=A100), 0)
    assert fine
    assert lines == [
        "GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-1)",
        "  MIG 1g.5gb      Device  0: (UUID: MIG-a)",
        "  MIG 3g.20gb     Device  1: (UUID: MIG-b)",
        "GPU 1: NVIDIA A100-PCIE-40GB (UUID: GPU-2)",
    ]
