"""A VM of somebody else that runs with a GPU: whatever would power-cycle, reboot or replace what it needs is
refused with its name, each time it is decided.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from typing import Any

import pytest
from kinds import servers
from kinds.gpu_host import test_gpu_host
from kinds.gpu_host.test_gpu_host import MARK, ONE, TWO, card, host

import bfinfra.kinds
from bfinfra.backends.vcenter.esxi import Holder
from bfinfra.kinds.vcenter.gpu_host.state import GpuHostNote
from bfinfra.model.errors import Refusal
from bfinfra.model.step import Disruption, Step

IF_NEEDED = test_gpu_host.spec(reboot="if_needed", reboot_in_use=True)
COMMITTED = MARK.committed(IF_NEEDED.applied())
OTHER = "0000:d8:00.0"
THEIRS = (Holder("vm-9", "theirs", True, "", (OTHER,), ()),)
DYNAMIC = (Holder("vm-9", "theirs", True, "", (), ()),)
"""What a VM with a dynamic device or a vGPU holds: a card, and nobody says which."""
HOSTS: dict[str, tuple[Any, Any]] = {
    "a card is set": (IF_NEEDED, host(card(ONE), card(TWO), card(OTHER, on=True))),
    "what was set is owed a reboot": (
        IF_NEEDED,
        host(
            card(ONE, on=True, active=False),
            card(TWO, on=True),
            card(OTHER, on=True),
            note=GpuHostNote(COMMITTED, {ONE: False}),
        ),
    ),
    "a reboot was started": (
        IF_NEEDED,
        host(
            card(ONE, on=True, active=False),
            card(TWO, on=True),
            card(OTHER, on=True),
            note=GpuHostNote(COMMITTED, {ONE: False}, "from:2026-01-01"),
        ),
    ),
    "what was there is put back": (
        None,
        host(card(ONE, on=True), card(OTHER, on=True), note=GpuHostNote(COMMITTED, {ONE: False})),
    ),
    "a reboot was started to put it back": (
        None,
        host(
            card(ONE, active=True),
            card(OTHER, on=True),
            note=GpuHostNote(COMMITTED, {ONE: False}, "from:2026-01-01"),
        ),
    ),
}


@pytest.mark.parametrize("holders", [THEIRS, DYNAMIC], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("case", HOSTS)
def test_a_host_is_not_rebooted(case: str, holders: tuple[Holder, ...]) -> None:
    spec, state = HOSTS[case]
    assert "Reboot" in test_gpu_host.steps(spec, state)
    held = replace(state, detail=replace(state.detail, holders=holders))
    with pytest.raises(Refusal, match="the VM theirs runs with its GPU"):
        test_gpu_host.steps(spec, held)


def test_a_host_is_rebooted_where_their_vm_is_off() -> None:
    spec, state = HOSTS["a card is set"]
    assert "Reboot" in test_gpu_host.steps(
        spec, replace(state, detail=replace(state.detail, holders=(replace(THEIRS[0], on=False),)))
    )


SERVERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "it is made": (servers.spec(), None, {}),
    "it is started": (servers.spec(), servers.state(servers.machine(on=False)), {}),
    "it is reconfigured": (servers.spec(cpus=12), servers.state(), {}),
    "it is replaced": (servers.spec(), servers.state(), {"ova": servers.package("4.0")}),
    "its import is made anew": (servers.spec(), servers.state(importing=True), {}),
}


@pytest.mark.parametrize("case", SERVERS)
def test_a_server_does_not_get_their_card(case: str) -> None:
    """Its own VM may have the card among its devices as well: two that run can't, so theirs has it now."""
    spec, existing, how = SERVERS[case]
    assert servers.steps(spec, existing, servers.context(**how))
    held = replace(servers.HOST, holders=(Holder("vm-9", "theirs", True, "", servers.CARDS, ()),))
    with pytest.raises(Refusal, match="the VM theirs"):
        servers.steps(spec, existing, servers.context(host=held, **how))


SERVICES = {
    "flexdirect_host.Restart",
    "flexdirect_host.Anew",
    "nvidia_container_toolkit.Restart",
    "nvidia_container_toolkit.RemoveRestart",
    "kubeadm_cluster.Leave",
}
"""A service on a machine restarts, or a node is emptied, not the machine: no vSphere device changes hands,
and it wants --allow-disruption.
"""
SHARED = {"service_vm.Stop", "bitfusion_vm.Stop", "bitfusion_vm.StopFirst", "bitfusion_vm.SetFirst"}
"""vGPUs are shares, handed out by vCenter at power-on: stopping one's own machine, or a client that the site
names, takes none from another.
"""
BY_VCENTER = {"host_image.Remediate"}
"""vCenter empties a host before it restarts it, and refuses while a VM with a card can't move."""


def test_every_step_that_disrupts_hardware_is_one_of_these() -> None:
    """A new one has to be thought of here."""
    modules = [
        importlib.import_module(each.name)
        for each in pkgutil.walk_packages(bfinfra.kinds.__path__, "bfinfra.kinds.")
        if not each.name.endswith("__main__")
    ]
    assert modules
    assert {
        f"{step.__module__.split('.')[3]}.{step.__name__}"
        for step in below(Step)
        if step.disruption in (Disruption.REBOOT, Disruption.POWER_CYCLE)
        and step.__module__.startswith("bfinfra.kinds.")
    } == {"gpu_host.Reboot", "gpu_host.ShutDown", "base.Stop", *SERVICES, *SHARED, *BY_VCENTER}


def below(cls: type) -> set[type]:
    return {each for child in cls.__subclasses__() for each in (child, *below(child))}
