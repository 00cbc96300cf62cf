"""Every kind on hosts and VMs by its existing: what vCenter says of a host that it has lost, and of the VMs
there, is what it last saw.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from pyVmomi import vim
from rights.given import administrator, paths

import bfinfra.kinds as registry
from bfinfra.model import resource
from bfinfra.model.errors import BfinfraError

ON_HOSTS = [
    name
    for name in registry.names("vcenter")
    if registry.kind(name).State.last_known is not resource.State.last_known
]
OF_VCENTER = {
    "cluster_option": "of a cluster",
    "content_library": "of vCenter",
    "distributed_switch": "of vCenter, which keeps its settings apart from its hosts",
    "port_group": "of such a switch",
    "resource_pool": "of a cluster",
    "storage_policy": "of vCenter",
    "vm_class": "of vCenter",
}

PLACED = ("virtual_machine", "bitfusion_vm")
"""A VM to create is on no host yet: the plan warns of hosts that take none."""


def connect_all(sandbox: Any, *, on: bool) -> None:
    with administrator(sandbox) as si:
        hosts = [each for each in paths(si).values() if isinstance(each, vim.HostSystem)]
        for host in hosts:
            done(host.ReconnectHost_Task(None, None) if on else host.DisconnectHost_Task())


def done(task: Any) -> None:
    while task.info.state not in ("success", "error"):
        time.sleep(0.01)
    assert task.info.state == "success", task.info.error


def test_every_kind_of_vcenter_is_on_hosts_or_says_why_a_lost_host_is_none_of_its_business():
    others = set(registry.names("vcenter")) - {*ON_HOSTS}
    assert others - {"cluster_option"} == OF_VCENTER.keys() - {"cluster_option"}


@pytest.mark.thorough("virtual_machine", "host_option")
@pytest.mark.parametrize("kind", [name for name in ON_HOSTS if name != "cluster_option"])
def test_drift_says_that_last_known_values_were_compared_and_a_plan_takes_no_step(kind, sandbox):
    path = EXAMPLES[kind]
    first = apply(path, sandbox)
    assert made(first), endings(first)
    mine = {str(key) for key in first.endings if key.kind == kind}
    connect_all(sandbox, on=False)
    found = drift(path, sandbox)
    assert mine <= found.unreadable.keys()
    for each in mine:
        assert "its last known values were compared" in found.unreadable[each]
        assert "disconnected" in found.unreadable[each]
    assert found.blind
    kept = plan(path, sandbox)
    assert mine <= kept.stale.keys()
    assert {key for each in kept.warnings for key in mine if each.problem.what.startswith(key)} == mine
    with pytest.raises(BfinfraError, match=r"last known values were compared.*disconnected"):
        apply(path, sandbox, destroy=True)
    connect_all(sandbox, on=True)
    assert not drift(path, sandbox).blind
    assert made(apply(path, sandbox, destroy=True))


@pytest.mark.parametrize("kind", [name for name in ON_HOSTS if name not in {"cluster_option", *PLACED}])
def test_nothing_is_begun_on_a_host_that_vcenter_has_lost(kind, sandbox):
    connect_all(sandbox, on=False)
    before = sandbox.tally()["written"]
    with pytest.raises(BfinfraError, match="connect"):
        apply(EXAMPLES[kind], sandbox)
    assert sandbox.tally()["written"] == before


def test_a_machine_to_create_where_no_host_takes_one_is_refused_whatever_its_kind(sandbox):
    with administrator(sandbox) as si:
        for host in [each for each in paths(si).values() if isinstance(each, vim.HostSystem)]:
            done(host.EnterMaintenanceMode_Task(timeout=60))
    for kind, said in (
        ("virtual_machine", "no host of .* takes a VM now"),
        ("bitfusion_server", "takes no VM now"),
    ):
        with pytest.raises(BfinfraError, match=rf"{said}; .* is in maintenance mode"):
            apply(EXAMPLES[kind], sandbox)
