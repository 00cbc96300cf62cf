"""specs/dlvm.yaml: from the publisher's library to a machine with its vGPU, in one run; and what others change
in it afterwards.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
import yaml
from documents import started
from kinds.lifecycle import SPECS, apply, drift, endings, made, plan, world
from rights.given import Kube, supervisor
from sandbox.asking import Rest

from bfinfra.sandbox import Running

SITE = SPECS / "dlvm.yaml"
MACHINE = "service_vm/dl-01"
VM = "/apis/vmoperator.vmware.com/v1alpha6/namespaces/ml/virtualmachines/dl-01"
SERVICE = VM.replace("virtualmachines", "virtualmachineservices")
CLAIM = "/api/v1/namespaces/ml/persistentvolumeclaims/dl-01-data"
SECRET = "/api/v1/namespaces/ml/secrets/dl-01-bootstrap"
CLASS = "/api/vcenter/namespace-management/virtual-machine-classes/h100-40c"
BY = "?fieldManager=kubectl-edit"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with started(SPECS / "worlds/dlvm.yaml", tmp_path_factory.mktemp("dlvm")) as running:
        yield running


@pytest.fixture(autouse=True)
def _as_new(running: Running) -> Iterator[None]:
    yield
    running.reset()


def changed(folder: Path, **fields: object) -> Path:
    """The site with other fields of its machine."""
    given = yaml.safe_load(SITE.read_text())
    given["service_vm"]["dl-01"] |= fields
    (folder / "site.yaml").write_text(yaml.safe_dump(given))
    return folder / "site.yaml"


def by_others(kube: Kube, rest: Rest) -> None:
    """A dozen changes, by kubectl's patches and by REST."""
    machine = kube.call("GET", VM)["spec"]
    properties = {each["key"]: each["value"] for each in machine["bootstrap"]["vAppConfig"]["properties"]}
    properties |= {"hostname": {"value": "elsewhere"}, "password": {"value": "1234"}}
    listed = [{"key": key, "value": value} for key, value in properties.items()]
    spec = {
        "powerState": "PoweredOff",
        "className": "another",
        "volumes": [],
        "bootstrap": {"vAppConfig": {"properties": listed}},
        "readinessProbe": {"tcpSocket": {"port": 23}},
    }
    kube.call("PATCH", f"{VM}{BY}", {"spec": spec})
    owner = {
        "apiVersion": "vmoperator.vmware.com/v1alpha6",
        "kind": "VirtualMachine",
        "name": "dl-01",
        "uid": kube.call("GET", VM)["metadata"]["uid"],
    }
    kube.call("PATCH", f"{CLAIM}{BY}", {"metadata": {"ownerReferences": [owner]}})
    ports = [{"name": "ssh", "protocol": "TCP", "port": 2222, "targetPort": 22}]
    kube.call("PATCH", f"{SERVICE}{BY}", {"spec": {"ports": ports}})
    kube.call("PATCH", f"{SECRET}{BY}", {"data": {"user-data": base64.b64encode(b"other").decode()}})
    assert rest.call("PATCH", CLASS, {"cpu_count": 8}).status == 204
    space = {"vm_service_spec": {"vm_classes": [], "content_libraries": []}}
    assert rest.call("PATCH", "/api/vcenter/namespaces/instances/ml", space).status == 204
    lazy(rest)


def lazy(rest: Rest) -> None:
    """The library no longer follows its publisher by itself, and takes all files at once."""
    (library,) = rest.call("POST", "/api/content/library?action=find", {"name": "deep-learning"}).data
    other = {"subscription_info": {"automatic_sync_enabled": False, "on_demand": False}}
    assert rest.call("PATCH", f"/api/content/subscribed-library/{library}", other).status == 204


DRIFT = {
    f"{MACHINE}: power": "kubectl-edit",
    f"{MACHINE}: vm_class": "kubectl-edit",
    f"{MACHINE}: properties.hostname": "kubectl-edit",
    f"{MACHINE}: properties.password": "kubectl-edit",
    f"{MACHINE}: ready.tcp": "kubectl-edit",
    f"{MACHINE}: disks.data.attached": "",
    f"{MACHINE}: disks.data.keep": "kubectl-edit",
    f"{MACHINE}: expose": "kubectl-edit",
    f"{MACHINE}: secrets": "",
    "vm_class/h100-40c: cpus": "",
    "supervisor_namespace/ml: vm_classes": "",
    "supervisor_namespace/ml: content_libraries": "",
    "content_library/deep-learning: subscription.automatic_sync": "",
    "content_library/deep-learning: subscription.on_demand": "",
}


def found(running: Running) -> dict[str, str]:
    return {f"{each.key}: {each.field}": each.by for each in drift(SITE, running).found}


def test_the_site_is_made_agrees_without_a_write_and_goes_without_a_trace(running):
    before = world(running)
    done = apply(SITE, running)
    assert made(done), endings(done)
    assert supervisor(running, "GPU").call("GET", VM)["status"]["class"]["name"] == "h100-40c"
    written = running.tally()["written"]
    assert set(endings(apply(SITE, running)).values()) == {"kept"}
    assert running.tally()["written"] == written
    assert found(running) == {}
    gone = apply(SITE, running, destroy=True)
    assert made(gone), endings(gone)
    assert world(running) == before


def test_what_others_change_is_named_with_who_did_it_and_is_mended(running):
    assert made(apply(SITE, running))
    kube, rest = supervisor(running, "GPU"), Rest(running, "administrator@vsphere.local")
    uid = kube.call("GET", VM)["metadata"]["uid"]
    by_others(kube, rest)
    seen = found(running)
    assert DRIFT.items() <= seen.items(), seen
    done = apply(SITE, running)
    assert made(done), endings(done)
    assert found(running) == {}
    assert kube.call("GET", VM)["metadata"]["uid"] == uid, "mended, not replaced"
    with pytest.raises(HTTPError, match="403"):
        kube.call("PATCH", f"{VM}{BY}", {"spec": {"storageClass": "another"}})
    kube.call("DELETE", VM)
    assert f"{MACHINE}: " in found(running)


def test_a_disk_that_somebody_took_off_the_machine_is_named(running):
    assert made(apply(SITE, running))
    kube = supervisor(running, "GPU")
    kube.call("PATCH", f"{VM}{BY}", {"spec": {"volumes": []}})
    assert found(running) == {f"{MACHINE}: disks.data.attached": ""}
    assert made(apply(SITE, running))
    assert found(running) == {}


def test_one_field_is_one_write(running, tmp_path):
    assert made(apply(SITE, running))
    written = running.tally()["written"]
    path = changed(tmp_path, expose=[22, 8888, 9400])
    assert [step.title() for item in plan(path, running).pending for step in item.steps] == [
        "open ports 22, 8888, 9400 to VM dl-01 in ml",
        "update VM dl-01 in ml",
    ]
    assert made(apply(path, running))
    assert running.tally()["written"] <= written + 4


def test_another_vgpu_is_a_replacement_that_only_disks_to_keep_outlive(running, tmp_path):
    given = yaml.safe_load(SITE.read_text())
    given["vm_class"]["h100-80c"] = {**given["vm_class"]["h100-40c"], "vgpus": ["nvidia_h100-80c"]}
    given["supervisor_namespace"]["ml"]["vm_classes"].append("h100-80c")
    given["service_vm"]["dl-01"]["disks"]["scratch"] = {"size": "1GiB"}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, running))
    kube = supervisor(running, "GPU")
    disks = [CLAIM, CLAIM.replace("dl-01-data", "dl-01-scratch")]
    before = [kube.call("GET", each)["metadata"]["uid"] for each in (VM, *disks)]
    given["service_vm"]["dl-01"]["vm_class"] = "h100-80c"
    path.write_text(yaml.safe_dump(given))
    titles = [step.title() for item in plan(path, running).pending for step in item.steps]
    assert titles[0] == (
        "delete VM dl-01 in ml to make it anew with another vGPU or card; its disks data stay"
    )
    assert made(apply(path, running))
    after = [kube.call("GET", each)["metadata"]["uid"] for each in (VM, *disks)]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True, False]
    assert kube.call("GET", VM)["status"]["class"]["name"] == "h100-80c"


def test_its_secrets_are_in_no_object_but_its_secret(running):
    assert made(apply(SITE, running))
    shown: dict[str, Any] = running.world()
    text = json.dumps(shown)
    password = running.env["DLVM_PASSWORD"]
    assert password not in text
    assert base64.b64encode(password.encode()).decode() in text
