"""A VM is powered on where its host takes one; else the plan refuses it, for every kind of VM by its existing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, paths

import bfinfra.kinds as registry
from bfinfra.backends.vcenter.places import Host, Inventory
from bfinfra.kinds.power import conflicts
from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

MACHINES = {"virtual_machine": "sckubw01", "bitfusion_server": "bf-01", "service_vm": "dl-01"}
UNCHECKED = {"bitfusion_vm": "its VM is switched off and on by it, which no host in maintenance mode runs"}


def hosts(si: Any) -> list[Any]:
    return [each for each in paths(si).values() if isinstance(each, vim.HostSystem)]


def off(sandbox: Running, name: str) -> None:
    with administrator(sandbox) as si:
        (machine,) = (each for each in paths(si).values() if each.name == name)
        WaitForTask(machine.PowerOffVM_Task())


def maintain(sandbox: Running, *, on: bool = True) -> None:
    with administrator(sandbox) as si:
        for host in hosts(si):
            WaitForTask(
                host.EnterMaintenanceMode_Task(timeout=60)
                if on
                else host.ExitMaintenanceMode_Task(timeout=60)
            )


def test_every_kind_that_powers_a_vm_on_is_here() -> None:
    found = {
        name
        for name in registry.names("vcenter", "supervisor")
        if any(step.__name__ in ("Start", "PowerOn") for step in registry.kind(name).step_types)
    }
    assert found == {*MACHINES, *UNCHECKED}


@pytest.mark.parametrize("kind", ["virtual_machine", "bitfusion_server"])
def test_what_is_off_on_a_host_in_maintenance_mode_is_refused_at_the_plan_and_nothing_is_written(
    kind: str, sandbox: Running
) -> None:
    path, name = EXAMPLES[kind], MACHINES[kind]
    assert made(outcome := apply(path, sandbox)), endings(outcome)
    off(sandbox, name)
    maintain(sandbox)
    (problem,) = [each for each in plan(path, sandbox).problems if each.what.startswith(f"{kind}/{name}: ")]
    assert "it can't be powered on" in problem.what
    assert "is in maintenance mode" in problem.why
    before = sandbox.tally()["written"]
    with pytest.raises(BfinfraError, match="can't be powered on"):
        apply(path, sandbox)
    assert sandbox.tally()["written"] == before
    maintain(sandbox, on=False)
    assert made(outcome := apply(path, sandbox)), endings(outcome)


def test_what_is_to_stay_off_is_not_refused(sandbox: Running, tmp_path: Path) -> None:
    site = yaml.safe_load(EXAMPLES["virtual_machine"].read_text())
    (path := tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    assert made(apply(path, sandbox))
    site["virtual_machine"][MACHINES["virtual_machine"]]["power"] = "off"
    path.write_text(yaml.safe_dump(site))
    assert made(apply(path, sandbox))
    maintain(sandbox)
    assert plan(path, sandbox).problems == ()


def test_a_machine_of_a_supervisor_without_hosts_that_run_is_refused(sandbox: Running) -> None:
    path = EXAMPLES["service_vm"]
    maintain(sandbox)
    said = [str(each) for each in plan(path, sandbox).problems]
    assert any(
        "service_vm/dl-01: it can't be powered on; no host of compute runs a VM now" in each for each in said
    )


def test_a_host_that_this_site_takes_out_of_maintenance_mode_is_none_that_takes_no_vm() -> None:
    host = Host(moid="host-1", name="esx1", cluster="c1", connected=True, maintenance=True)
    key, inventory = Key("virtual_machine", "db"), Inventory(hosts=(host,))
    machine = SimpleNamespace(host="host-1", connected=True)
    begun, settled = SimpleNamespace(begun="from:1", name="esx1"), SimpleNamespace(begun=None, name="esx1")

    def refused(states: dict[Key, Any]) -> list[str]:
        return [each.why for each in conflicts([(key, machine)], inventory, states)]

    assert refused({}) == ["esx1 is in maintenance mode"]
    assert refused({Key("gpu_host", "esx1"): settled}) == ["esx1 is in maintenance mode"]
    assert refused({Key("gpu_host", "esx1"): begun}) == []
    assert refused({Key("host_image", "gpu"): SimpleNamespace(hosts=(begun,))}) == []
    assert refused({Key("host_image", "gpu"): SimpleNamespace(hosts=(settled,))}) != []
