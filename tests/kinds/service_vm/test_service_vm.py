"""Machines of the VM Service: made, found changed, resized, replaced with their disks kept, refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from kinds.unmanaged import Entry, Look, kube_object
from rights.given import supervisor

from bfinfra.sandbox import Running

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
    {"cloud_init": {"ssh_authorized_keys": ["ssh-ed25519 AAAA"]}},
    {"namespace": "team-a"},
)
