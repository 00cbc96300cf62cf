"""specs/vks-gpu.yaml: from the VM class with its vGPU to the GPU operator in its cluster, in one run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from documents import started
from kinds.lifecycle import SPECS, apply, drift, endings, made, plan, world

import bfinfra
from bfinfra.kinds.vcenter.host_image.branches import newer_guests
from bfinfra.model.conflict import Spot
from bfinfra.model.order import derived
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

SITE = SPECS / "vks-gpu.yaml"


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with started(SPECS / "worlds/vks-gpu.yaml", tmp_path_factory.mktemp("vks-gpu")) as running:
        yield running


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
    assert "zone-1" in found, "the namespace is in its zone"
    gone = apply(SITE, gpus, destroy=True)
    assert made(gone), endings(gone)
    assert world(gpus) == before


def test_the_driver_of_the_hosts_comes_before_what_needs_it(gpus):
    site = bfinfra.load(SITE, sandbox=gpus)
    before = derived(site.resources)
    hosts, graphics = Key("host_image", "gpu"), Key("host_graphics", "vgpu")
    assert hosts in before[graphics]
    assert hosts in before[Key("vm_class", "h100-40c")]
    assert graphics in before[Key("vks_cluster", "ml-01")]


@pytest.mark.thorough
def test_a_profile_that_the_hosts_do_not_offer_is_refused_once_they_tell(gpus, tmp_path):
    assert made(apply(SITE, gpus))
    path = tmp_path / "site.yaml"
    path.write_text(SITE.read_text().replace("vgpus: [nvidia_h100-40c]", "vgpus: [nvidia_h100-20c]"))
    [problem] = plan(path, gpus).problems
    assert "no host of the cluster gpu offers the vGPU profile nvidia_h100-20c" in str(problem)
    assert "they offer nvidia_h100-40c, nvidia_h100-80c" in str(problem)
    assert made(apply(SITE, gpus, destroy=True))


def test_a_guest_driver_that_is_newer_than_the_hosts_is_refused(gpus):
    site = bfinfra.load(SITE, sandbox=gpus)
    assert list(newer_guests(site.resources)) == []
    key = Key("gpu_operator", "ml-01")
    operator = site.resources[key]
    newer = operator.model_copy(
        update={"driver": operator.driver.model_copy(update={"version": "590.44.01"})}
    )
    [found] = newer_guests({**site.resources, key: newer})
    assert found.what == "its driver is of branch 590, newer than the hosts' 580"
    assert found.others == (Spot(Key("host_image", "gpu"), "components.NVIDIA-vGPU"),)
