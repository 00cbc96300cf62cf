"""Machines of the VM Service: made, found changed, resized, replaced with their disks kept, refused."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, EXAMPLES, QUICK, apply, drift, endings, made, plan, run_context
from kinds.unmanaged import Entry, Look, kube_object
from rights.given import supervisor

import bfinfra
from bfinfra.backends.vcenter.vm_classes import VmClass
from bfinfra.engine.apply import Options
from bfinfra.kinds.class_gpus import GpuFacts
from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.service_vm.catalog import ServiceVmFacts
from bfinfra.kinds.supervisor.service_vm.decide import resizes
from bfinfra.model.errors import SiteError
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

SPACE = "namespaces/team-a"
VMS = f"/apis/vmoperator.vmware.com/v1alpha6/{SPACE}/virtualmachines"
SERVICES = f"/apis/vmoperator.vmware.com/v1alpha6/{SPACE}/virtualmachineservices"
IMAGES = f"/apis/vmoperator.vmware.com/v1alpha6/{SPACE}/virtualmachineimages"
CLAIMS = f"/api/v1/{SPACE}/persistentvolumeclaims"
SECRETS = f"/api/v1/{SPACE}/secrets"


def site(folder: Path, space: dict[str, Any] | None = None, **changes: object) -> Path:
    """The example with some fields of its machine changed; None takes one out."""
    given = yaml.safe_load(EXAMPLES["service_vm"].read_text())
    machine = given["service_vm"]["dl-01"] | changes
    given["service_vm"]["dl-01"] = {key: value for key, value in machine.items() if value is not None}
    given["supervisor_namespace"]["team-a"] |= space or {}
    (folder / "site.yaml").write_text(yaml.safe_dump(given))
    return folder / "site.yaml"


def live(sandbox: Running) -> dict[str, Any]:
    found: dict[str, Any] = supervisor(sandbox).call("GET", f"{VMS}/dl-01")
    return found


def uid(sandbox: Running, path: str) -> str:
    return str(supervisor(sandbox).call("GET", path)["metadata"]["uid"])


def refused(sandbox: Running, path: Path) -> str:
    (problem,) = plan(path, sandbox).problems
    return str(problem)


def titles(sandbox: Running, path: Path) -> list[str]:
    found = plan(path, sandbox)
    assert not found.problems, found.problems
    return [step.title() for item in found.pending for step in item.steps]


def test_a_machine_runs_with_its_disk_its_secret_and_its_ports(sandbox, tmp_path):
    done = apply(site(tmp_path), sandbox)
    assert made(done), endings(done)
    machine = live(sandbox)
    assert machine["status"]["powerState"] == "PoweredOn"
    assert [each["attached"] for each in machine["status"]["volumes"]] == [True]
    password = sandbox.env["DLVM_PASSWORD"]
    held = supervisor(sandbox).call("GET", f"{SECRETS}/dl-01-bootstrap")
    assert base64.b64decode(held["data"]["password"]).decode() == password
    assert password not in json.dumps(machine)
    ingress = supervisor(sandbox).call("GET", f"{SERVICES}/dl-01")["status"]["loadBalancer"]["ingress"]
    assert ingress[0]["ip"].startswith("10.1.0.")
    assert drift(site(tmp_path), sandbox).found == ()


def test_a_disk_that_is_not_gone_yet_is_waited_for_and_nothing_has_failed(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    kube = supervisor(sandbox)
    kube.call("PATCH", f"{CLAIMS}/dl-01-data", {"metadata": {"finalizers": ["theirs.test/held"]}})
    kube.call("DELETE", f"{CLAIMS}/dl-01-data")
    path = site(tmp_path, disks={"data": {"size": "20GiB", "keep": True}})
    said = endings(apply(path, sandbox))["service_vm/dl-01"]
    assert said.startswith("still-waiting: "), said
    assert "it is not yet so that the former disk data is gone" in said
    kube.call("PATCH", f"{CLAIMS}/dl-01-data", {"metadata": {"finalizers": None}})
    assert made(apply(path, sandbox))


def test_cpus_and_memory_change_while_it_is_off_and_it_stays_the_same_machine(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    before = uid(sandbox, f"{VMS}/dl-01")
    path = site(tmp_path, vm_class="guaranteed-small")
    found = plan(path, sandbox)
    (item,) = found.pending
    assert item.disruption == "power-cycle"
    assert titles(sandbox, path)[0] == "shut VM dl-01 in team-a down, to give it another class"
    assert made(apply(path, sandbox))
    assert live(sandbox)["status"]["class"]["name"] == "guaranteed-small"
    assert live(sandbox)["status"]["powerState"] == "PoweredOn"
    assert uid(sandbox, f"{VMS}/dl-01") == before


def test_another_image_is_a_replacement_that_keeps_the_disk_and_the_plan_says_so(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    before, disk = uid(sandbox, f"{VMS}/dl-01"), uid(sandbox, f"{CLAIMS}/dl-01-data")
    path = site(tmp_path, image={"library": "deep-learning", "item": "plain-ubuntu"})
    (item,) = plan(path, sandbox).pending
    assert item.action == "replace"
    assert titles(sandbox, path)[0] == (
        "delete VM dl-01 in team-a to make it anew with another image; its disks data stay"
    )
    assert made(apply(path, sandbox))
    assert uid(sandbox, f"{VMS}/dl-01") != before
    assert uid(sandbox, f"{CLAIMS}/dl-01-data") == disk
    assert plan(path, sandbox).pending == ()


def test_a_disk_that_leaves_the_file_goes_after_the_machine_let_go_of_it(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    path = site(tmp_path, disks=None)
    assert titles(sandbox, path) == [
        "update VM dl-01 in team-a",
        "delete disk data of VM dl-01 in team-a and its data",
    ]
    assert made(apply(path, sandbox))
    assert supervisor(sandbox).call("GET", CLAIMS)["items"] == []
    assert live(sandbox)["spec"].get("volumes", []) == []


def test_cloud_init_gets_its_user_data_by_reference_and_another_bootstrap_is_a_replacement(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    path = site(tmp_path, properties=None, cloud_init={"user_data": {"env": "DLVM_PASSWORD"}})
    assert "to make it anew with another kind of bootstrap" in titles(sandbox, path)[0]
    assert made(apply(path, sandbox))
    assert live(sandbox)["spec"]["bootstrap"] == {
        "cloudInit": {"rawCloudConfig": {"name": "dl-01-bootstrap", "key": "user-data"}}
    }
    assert drift(path, sandbox).found == ()


def test_what_the_namespace_does_not_offer_is_refused_before_the_first_write(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    written = sandbox.tally()["written"]
    image = {"library": "deep-learning", "item": "common-container"}
    wrong = refused(sandbox, site(tmp_path, image=image))
    assert "shows no item common-container of deep-learning" in wrong
    assert "there are: common-container-nv, plain-ubuntu" in wrong
    large = {"data": {"size": "200GiB", "keep": True}}
    assert "the namespace team-a may use 100GiB" in refused(sandbox, site(tmp_path, disks=large))
    less = {"data": {"size": "1GiB", "keep": True}}
    assert "disk data can't shrink" in refused(sandbox, site(tmp_path, disks=less))
    assert sandbox.tally()["written"] == written


def test_an_image_that_is_not_ready_or_there_twice_is_refused_with_its_names(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    kube = supervisor(sandbox)
    (image,) = [
        each for each in kube.call("GET", IMAGES)["items"] if each["status"]["name"] == "plain-ubuntu"
    ]
    path = site(tmp_path, image={"library": "deep-learning", "item": "plain-ubuntu"})
    twin = {**image, "metadata": {"name": "vmi-twin", "namespace": "team-a"}}
    kube.call("POST", IMAGES, twin)
    assert f"they are {image['metadata']['name']}, vmi-twin" in refused(sandbox, path)
    kube.call("DELETE", f"{IMAGES}/vmi-twin")
    conditions = [{"type": "Ready", "status": "False", "message": "not synchronised"}]
    kube.call("PATCH", f"{IMAGES}/{image['metadata']['name']}", {"status": {"conditions": conditions}})
    assert "is not ready" in refused(sandbox, path)
    assert "not synchronised" in refused(sandbox, path)


def test_an_object_of_others_under_a_parts_name_is_refused(sandbox, tmp_path):
    bare = yaml.safe_load(site(tmp_path).read_text())
    del bare["service_vm"]
    (tmp_path / "bare.yaml").write_text(yaml.safe_dump(bare))
    assert made(apply(tmp_path / "bare.yaml", sandbox))
    claim = {
        "metadata": {"name": "dl-01-data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gold",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    supervisor(sandbox).call("POST", CLAIMS, claim)
    assert "PersistentVolumeClaim dl-01-data exists already" in refused(sandbox, site(tmp_path))


def test_it_waits_for_its_probe(sandbox, tmp_path):
    path = site(tmp_path, ready={"tcp": 9999})
    options = Options(retry=QUICK, deadline=0.2)
    site_file = bfinfra.load(path, sandbox=sandbox)
    done = bfinfra.apply(
        site_file, approve=lambda _: EVERYTHING, options=options, context=run_context(sandbox)
    )
    assert "Ready: dial tcp" in str(endings(done)["service_vm/dl-01"])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"cloud_init": {"ssh_authorized_keys": ["ssh-ed25519 A"]}}, "properties and cloud_init exclude"),
        ({"expose": [22, 22]}, "22 is listed twice"),
        ({"vm_class": "large"}, "team-a offers no VM class large"),
        ({"storage_class": "silver"}, "team-a offers no storage class silver"),
        ({"disks": {"data": {"size": "1000KiB"}}}, "a multiple of 1 MiB"),
    ],
)
def test_the_file_alone_shows_what_is_wrong(fields, why, sandbox, tmp_path):
    with pytest.raises(SiteError, match=why):
        bfinfra.load(site(tmp_path, **fields), sandbox=sandbox)


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    spec = {
        "image": {"kind": "VirtualMachineImage", "name": "vmi-0"},
        "className": "best-effort-small",
        "storageClass": "gold",
    }
    body = {
        "apiVersion": "vmoperator.vmware.com/v1alpha6",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": spec,
    }
    return kube_object(supervisor(sandbox), VMS, body)


UNMANAGED = Entry(at="dl-01", plant=unmanaged, inside="nobody puts objects into a machine")
CHANGED_FIELDS = (
    {"power": "off"},
    {"expose": [22]},
    {"ready": {"tcp": 8888}},
    {"disks": {"data": {"size": "20GiB", "keep": True}}},
    {"disks": {"data": {"size": "20GiB", "keep": False}}},
    {"properties": {"hostname": "dl-02"}},
    {"vm_class": "guaranteed-small"},
    {"image": {"library": "deep-learning", "item": "plain-ubuntu"}},
    {"storage_class": "gold"},
)


def test_a_class_of_other_gpus_is_no_change_of_size() -> None:
    small, pair = VmClass(4, 2**34), VmClass(4, 2**34, groups=("Nvidia:2@nvidia_h100-80c%NVLink",))
    four = VmClass(8, 2**35, groups=("Nvidia:4@nvidia_h100-80c%NVLink",))
    classes = {"small": small, "large": VmClass(8, 2**35), "pair": pair, "more": replace(pair, cpus=8)}
    there = GpuFacts({**classes, "four": four, "vgpu": VmClass(4, 2**34, vgpus=("nvidia_h100-80c",))})
    facts = ServiceVmFacts(environment=Environment(gpus=there))
    assert resizes("small", "large", facts)
    assert resizes("pair", "more", facts)
    for before, after in (("pair", "four"), ("small", "pair"), ("pair", "small"), ("small", "vgpu")):
        assert not resizes(before, after, facts), (before, after)
