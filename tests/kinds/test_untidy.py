"""A vCenter with other people's objects of the same names: another folder, another datacenter, another cluster.
What a site means is found, and everything else is as before, compared whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

KINDS = (
    "virtual_machine",
    "bitfusion_server",
    "resource_pool",
    "distributed_switch",
    "port_group",
    "gpu_host",
)
SWITCH = "roce"


def machine(name: str) -> vim.vm.ConfigSpec:
    return vim.vm.ConfigSpec(
        name=name,
        guestId="other3xLinux64Guest",
        files=vim.vm.FileInfo(vmPathName="[local]"),
        numCPUs=1,
        memoryMB=64,
    )


def twin_machines(si: Any, names: set[str]) -> None:
    """VMs of these names, in folders of two other teams."""
    find = si.content.searchIndex.FindByInventoryPath
    for team in ("teamA", "teamB"):
        folder = find("/dc/vm").CreateFolder(team)
        for name in sorted(names):
            WaitForTask(folder.CreateVM_Task(machine(name), find("/dc/host/farm/Resources")))


def twin_networks(si: Any) -> None:
    """A datacenter in a folder, with switches and port groups of the names that the examples use."""
    center = si.content.rootFolder.CreateFolder("abroad").CreateDatacenter("elsewhere")
    config = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec(name=SWITCH, description="theirs")
    wanted = vim.DistributedVirtualSwitch.CreateSpec(configSpec=config)
    WaitForTask(center.networkFolder.CreateDVS_Task(wanted))
    switch = si.content.searchIndex.FindByInventoryPath(f"/abroad/elsewhere/network/{SWITCH}")
    port = vim.dvs.VmwareDistributedVirtualSwitch.VmwarePortConfigPolicy(
        vlan=vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec(vlanId=7, inherited=False)
    )
    group = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
        name="high-speed", description="theirs", numPorts=4, type="earlyBinding", defaultPortConfig=port
    )
    WaitForTask(switch.AddDVPortgroup_Task([group]))


def twin_pools(si: Any, names: set[str]) -> None:
    """Pools of these names on the other cluster, each in the one before."""
    share = vim.ResourceAllocationInfo(
        reservation=0, limit=-1, expandableReservation=True, shares=vim.SharesInfo(level="low", shares=1)
    )
    spec = vim.ResourceConfigSpec(cpuAllocation=share, memoryAllocation=share)
    home = si.content.searchIndex.FindByInventoryPath("/dc/host/compute/Resources")
    for name in sorted(names):
        home = home.CreateResourcePool(name, spec)


def of_others(si: Any, given: dict[str, Any]) -> None:
    """Twins of all that a site names."""
    pools = {*given.get("resource_pool", {})}
    twin_machines(si, {*given.get("virtual_machine", {}), *given.get("bitfusion_server", {}), "centos-7.6"})
    twin_networks(si)
    twin_pools(si, pools)


def strangers(sandbox: Running) -> dict[str, str]:
    """Path → all of the object that could be changed, of whatever stands in other people's places."""
    found = {}
    with administrator(sandbox) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.ManagedEntity], True)
        for each in view.view:
            path, at = [each.name], each.parent
            while at is not None and at != si.content.rootFolder:
                path.insert(0, at.name)
                at = at.parent
            where = "/".join(path)
            if any(part in where for part in ("teamA/", "teamB/", "abroad/", "compute/Resources/")):
                config = getattr(each, "config", None)
                found[where] = f"{each} {each.parent} {getattr(each, 'customValue', None)} {config}"
    return found


@contextmanager
def untouched(sandbox: Running) -> Iterator[None]:
    before = strangers(sandbox)
    assert len(before) > 5
    yield
    assert strangers(sandbox) == before


def written(path: Path, given: dict[str, Any], **site: Any) -> Path:
    given = {**given, **site, "vcenter": {**given["vcenter"], "datacenter": "dc"}}
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_life_among_twins_touches_none_of_them(kind: str, sandbox: Running, tmp_path: Path) -> None:
    given = yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader)
    for each in given.get("virtual_machine", {}).values():
        each["template"] = "/dc/vm/centos-7.6"
    for each in (*given.get("virtual_machine", {}).values(), *given.get("resource_pool", {}).values()):
        each["cluster"] = "host/farm"
    site = written(tmp_path / "site.yaml", given)
    with administrator(sandbox) as si:
        of_others(si, given)
    with untouched(sandbox):
        assert made(outcome := apply(site, sandbox)), endings(outcome)
        assert plan(site, sandbox).pending == ()
        assert drift(site, sandbox).found == ()
        ended = endings(apply(site, sandbox, destroy=True))
        assert {*ended.values()} <= {"done", "deleted", "kept"}, ended


@pytest.fixture
def mine(sandbox: Running, tmp_path: Path) -> Path:
    """A site that means the machine of team B, of which team A has one, too."""
    with administrator(sandbox) as si:
        twin_machines(si, {"db"})
    given = yaml.load(EXAMPLES["virtual_machine"].read_text(), yaml.BaseLoader)
    wanted = {"cluster": "farm", "datastore": "local", "cpus": 1, "memory": "64MiB", "power": "off"}
    given["virtual_machine"] = {"db": {**wanted, "template": "/dc/vm/centos-7.6", "folder": "teamB"}}
    return written(tmp_path / "site.yaml", given)


def test_the_machine_in_the_sites_folder_is_adopted_and_destroyed_and_its_twin_stays(
    mine: Path, sandbox: Running
) -> None:
    before = strangers(sandbox)
    apply(mine, sandbox, adopt=frozenset({Key("virtual_machine", "db")}))
    after = strangers(sandbox)
    assert [path for path in before if before[path] != after[path]] == ["dc/vm/teamB/db"]
    assert plan(mine, sandbox).pending == ()
    apply(mine, sandbox, destroy=True)
    assert before.keys() - strangers(sandbox).keys() == {"dc/vm/teamB/db"}
    assert strangers(sandbox)["dc/vm/teamA/db"] == before["dc/vm/teamA/db"]


def test_a_machine_whose_folder_is_not_written_is_new_and_its_namesakes_are_named(
    mine: Path, sandbox: Running
) -> None:
    mine.write_text(mine.read_text().replace("    folder: teamB\n", ""))
    found = plan(mine, sandbox)
    assert [str(item.action) for item in found.items if item.key.name == "db"] == ["create"]
    assert any("/dc/vm/teamA/db, /dc/vm/teamB/db" in str(each) for each in found.warnings), found.warnings


def test_a_template_that_two_folders_have_is_refused_with_their_paths(mine: Path, sandbox: Running) -> None:
    with administrator(sandbox) as si:
        twin = si.content.searchIndex.FindByInventoryPath("/dc/vm/teamA").CreateVM_Task
        WaitForTask(
            twin(machine("centos-7.6"), si.content.searchIndex.FindByInventoryPath("/dc/host/farm/Resources"))
        )
    text = mine.read_text().replace("/dc/vm/centos-7.6", "centos-7.6").replace("teamB", "''")
    mine.write_text(text)
    (problem,) = plan(mine, sandbox).problems
    assert (
        "2 templates are called centos-7.6; /dc/vm/centos-7.6, /dc/vm/teamA/centos-7.6; write the path"
        in str(problem)
    )
