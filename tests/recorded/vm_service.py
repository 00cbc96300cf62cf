"""vm-operator's definitions, and what bfinfra writes for machines of the VM Service in each of their versions."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from typing import Any

import yaml
from recorded.sources import fetched, stored

from bfinfra.backends.kubernetes.marks import marked
from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm.spec import Spec
from bfinfra.model.mark import Mark

RELEASED = "module/vm-operator-v1.9.0"
BASES = "config/crd/bases/vmoperator.vmware.com_{}.yaml"
PLURALS = ("virtualmachines", "virtualmachineservices")
LATER = {
    "virtualmachines": "f8519410f0db9c2853209b0d766af099dd6b8c84b50c2105f8fa9e86082cfdd7",
    "virtualmachineservices": "db78395af951a3c222e6b4efebded7fef2b37ddc096a38dc2a2b4a75a0f5485c",
}
"""Definitions of vm-operator 506dc5dc, which no registry has: their SHA-256."""
IN = {
    "v1alpha2": "released",
    "v1alpha3": "released",
    "v1alpha4": "later",
    "v1alpha5": "later",
    "v1alpha6": "later",
}
"""Version → where its definitions are had from."""
FULL: dict[str, Any] = {
    "namespace": "ml",
    "image": {"library": "deep-learning", "item": "common-container-nv"},
    "vm_class": "h100-40c",
    "storage_class": "gold",
    "disks": {
        "data": {"size": "500GiB", "keep": True},
        "scratch": {"size": "1TiB", "storage_class": "silver"},
    },
    "expose": [22, 8888],
    "ready": {"tcp": 22},
    "power": "off",
}
BARE = {field: FULL[field] for field in ("namespace", "image", "vm_class", "storage_class")}
SECRET = {"env": "A"}
SPECS = {
    "bare": BARE,
    "properties": {**FULL, "properties": {"hostname": "dl-01", "password": SECRET}},
    "cloud-init": {**FULL, "cloud_init": {"user_data": SECRET, "ssh_authorized_keys": ["ssh-ed25519 AAAA"]}},
    "keys alone": {**BARE, "cloud_init": {"ssh_authorized_keys": ["ssh-ed25519 AAAA"]}},
}


def definition(plural: str, version: str) -> dict[str, Any]:
    """The definition that has this version. Fails or skips where it isn't there."""
    if IN[version] == "released":
        return yaml.safe_load((fetched(RELEASED) / BASES.format(plural)).read_text())  # type: ignore[no-any-return]  # YAML
    data = stored(f"crds/{plural}-v1alpha6.yaml.gz").read_bytes()
    text = gzip.decompress(data)
    assert hashlib.sha256(text).hexdigest() == LATER[plural], f"another definition of {plural}"
    return yaml.safe_load(text)  # type: ignore[no-any-return]  # YAML


def objects(version: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All that a site can write: where it stands, and the object."""
    api, mark = f"{form.GROUP}/{version}", Mark("mine", "service_vm/dl-01", {})
    for name, given in SPECS.items():
        spec = Spec.model_validate(given)
        machine = form.machine(
            "dl-01", spec, api, ("VirtualMachineImage", "vmi-0a1b2c"), form.POWER[spec.power]
        )
        yield name, marked(machine, mark)
        if spec.expose:
            yield name, form.owned(marked(form.service("dl-01", spec, api), mark), api, "dl-01", "0-1-2-3")
