"""Each field changed by itself: afterwards the world is another one and the plan is empty, or the plan
refuses it. Nothing is noted as applied that was not done.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan, world

SERVER = {
    "networks": {"Network 1": {"network": "VM Network", "address": "10.2.0.6/24", "gateway": "10.2.0.1"}}
}
CHANGED: dict[str, list[dict[str, Any]]] = {
    "bitfusion_server": [
        {"cpus": 8},
        {"memory": "32GiB"},
        {"mmio": "64GiB"},
        {"disk": "2MiB"},
        {"disk": "1MiB"},
        {"disk_provisioning": "thick"},
        {"attach": "dynamic"},
        SERVER,
        {"properties": {"hostname": "other.small.test"}},
        {"gpus": 0},
    ],
    "virtual_machine": [
        {"cpus": 6},
        {"memory": "32GiB"},
        {"reserve": True},
        {"disk": "64GiB"},
        {"disk": "32GiB"},
        {"disks": {"scsi0:1": {"size": "50GiB"}}},
        {"disks": {"scsi0:1": {"size": "30GiB"}}},
        {"disks": {"scsi0:1": {"size": "40GiB", "thin": False}}},
        {"extra": {"a.b": "c"}},
        {"power": "off"},
        {"adapters": []},
    ],
    "vm_class": [
        {"cpus": 8},
        {"memory": "8GiB"},
        {"cpu_reservation": 50},
        {"description": "words"},
        {"devices": []},
    ],
    "supervisor_namespace": [
        {"limits": {"cpu": "20GHz", "memory": "64GiB"}},
        {"limits": {"cpu": "16GHz", "memory": "96GiB"}},
        {"limits": {"storage": "1TiB"}},
        {"description": "words"},
        {"storage": {"gold": "1TiB"}},
        {"access": [{"group": "devs@small.test", "role": "edit"}]},
        {"vm_classes": ["guaranteed-small"]},
        {"content_libraries": ["tkr"]},
    ],
    "port_group": [{"vlan": 32}, {"ports": 16}, {"ports": 4}],
    "distributed_switch": [{"mtu": 1500}, {"uplinks": 2}, {"hosts": {"esx1.small.test": ["vmnic1"]}}],
    "vmkernel_adapter": [
        {"mtu": 1400},
        {"hosts": {"esx1.small.test": "192.168.0.25/24"}},
        {"hosts": {"esx1.small.test": "dhcp"}},
    ],
    "host_option": [{"value": "vmk4"}, {"key": "Net.PVRDMAVmknic", "hosts": ["esx2.small.test"]}],
    "content_library": [{"description": "words"}, {"datastore": "local"}],
}
SLOW = ("distributed_switch", "supervisor_namespace", "virtual_machine", "vm_class")
NOTES = re.compile(r'bfinfra[^"\\\n]*|[^\n]*(?:[vV]ersion|modified|ConfigId|[Tt]ime)[^\n]*\n')


def bare(sandbox: Any) -> str:
    """The world without notes of bfinfra, counters and times."""
    return NOTES.sub("", world(sandbox) + "\n")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.peers) if kind in SLOW else kind for kind in sorted(CHANGED)],
)
def test_what_is_noted_as_applied_is_seen_in_the_world(kind, sandbox, tmp_path):
    text = re.sub(r"(0x[0-9a-f]{4})", r'"\1"', EXAMPLES[kind].read_text())
    example, path = yaml.safe_load(text), tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(example))
    assert made(apply(path, sandbox))
    (name,) = example[kind]
    for fields in CHANGED[kind]:
        site, before = copy.deepcopy(example), bare(sandbox)
        site[kind][name] |= {
            field: {**site[kind][name].get(field, {}), **value} if field == "properties" else value
            for field, value in fields.items()
        }
        path.write_text(yaml.safe_dump(site))
        found = plan(path, sandbox)
        if found.problems:
            assert bare(sandbox) == before
            continue
        done = apply(path, sandbox)
        assert made(done), (fields, endings(done))
        assert plan(path, sandbox).pending == (), fields
        assert drift(path, sandbox).found == (), fields
        if found.pending:
            assert bare(sandbox) != before, f"{fields}: noted as applied, and nothing was done"
