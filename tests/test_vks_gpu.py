"""specs/vks-gpu.yaml: from the VM class with its vGPU to the GPU operator in its cluster, in one run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kinds.lifecycle import SPECS, apply, drift, endings, made, world

from bfinfra import sandbox as sandboxes
from bfinfra.sandbox import Running

SITE = SPECS / "vks-gpu.yaml"


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state: Path = tmp_path_factory.mktemp("vks-gpu") / "state"
    yield sandboxes.start(SPECS / "worlds/vks-gpu.yaml", state, pace=0)
    sandboxes.stop(state)


def test_the_site_is_made_agrees_without_a_write_and_goes_without_a_trace(gpus):
    before = world(gpus)
    done = apply(SITE, gpus)
    assert made(done), endings(done)
    found = json.dumps(gpus.world())
    assert "nvidia_h100-40c" in found
    assert "ml-01-cluster-autoscaler" in found
    assert "nvidia-dcgm-exporter" in found
    written = gpus.tally()["written"]
    assert set(endings(apply(SITE, gpus)).values()) == {"kept"}
    assert gpus.tally()["written"] == written
    assert drift(SITE, gpus).found == ()
    gone = apply(SITE, gpus, destroy=True)
    assert made(gone), endings(gone)
    assert world(gpus) == before
