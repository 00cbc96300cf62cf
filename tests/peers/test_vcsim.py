"""A GPU host and a Bitfusion server on vcsim: applied, changed, changed behind bfinfra's back with govc,
destroyed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from peers.conftest import Vcsim, vcsim_site
from peers.found import Peers
from peers.own_vcsim import session
from peers.site_files import SiteFile, all_are, endings, fields
from pyVim.task import WaitForTask
from pyVmomi import vim
from waiting import until

from bfinfra.model.errors import BfinfraError

HOST, SERVER = "gpu_host/DC0_C0_H0", "bitfusion_server/bf-01"
GUEST = {
    "toolsRunningStatus": "guestToolsRunning",
    "ipAddress": "10.9.0.5",
    "hostName": "bf-01.example.local",
}


@pytest.fixture
def site(vcsim: Vcsim, tmp_path: Path, ova: Path) -> SiteFile:
    return vcsim_site(vcsim.peers, tmp_path, ova)


def guest_starts(vcsim: Vcsim) -> None:
    """vcsim has no guests: what VMware Tools would report is set from outside."""
    vcsim.govc(
        "vm.change",
        "-vm",
        "bf-01",
        *(word for key, value in GUEST.items() for word in ("-e", f"SET.guest.{key}={value}")),
    )


def applied(site: SiteFile, vcsim: Vcsim) -> None:
    """Applied until nothing is left; the guest starts once its VM is on."""

    def on() -> bool:
        found = endings(site.apply(deadline=1))
        assert found[SERVER].startswith("still-waiting"), found
        return "bf-01" in vcsim.govc("find", "/", "-type", "m", "-runtime.powerState", "poweredOn")

    until(on)
    guest_starts(vcsim)
    all_are(site.apply(), "done", "kept")


def machine(vcsim: Vcsim) -> dict[str, Any]:
    (found,) = json.loads(vcsim.govc("vm.info", "-json", "bf-01"))["virtualMachines"]
    return found


def cards(vcsim: Vcsim) -> list[str]:
    backings = [device.get("backing", {}) for device in machine(vcsim)["config"]["hardware"]["device"]]
    return sorted(backing["id"] for backing in backings if "systemId" in backing)


def attach(peers: Peers, name: str, address: str) -> None:
    """govc asks vcsim for the devices of no host in particular, and gets none; pyVmomi attaches what it is
    given.
    """
    backing = vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=address, deviceId="1db6", systemId="", vendorId=0x10DE, deviceName="gpu"
    )
    card = vim.vm.device.VirtualDeviceSpec(
        operation="add", device=vim.vm.device.VirtualPCIPassthrough(key=-1, backing=backing)
    )
    with session(peers) as si:
        found = si.content.searchIndex.FindByInventoryPath(f"DC0/vm/{name}")
        WaitForTask(found.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[card])))


def passthrough(vcsim: Vcsim, name: str = "DC0_C0_H0") -> list[tuple[bool, bool]]:
    found = json.loads(
        vcsim.govc("object.collect", "-json", f"/DC0/host/DC0_C0/{name}", "config.pciPassthruInfo")
    )
    return [(d["passthruEnabled"], d["passthruActive"]) for d in found[0]["val"]["_value"]]


def test_a_plan_on_the_shared_one_writes_nothing(peers: Peers, tmp_path: Path, ova: Path) -> None:
    found = vcsim_site(peers, tmp_path, ova).plan()
    assert not found.problems, found.problems
    assert set(fields(found)) <= {HOST, SERVER}


def test_apply_makes_what_govc_sees_and_a_second_one_writes_nothing(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    assert passthrough(vcsim) == [(True, True)] * 2
    found = machine(vcsim)
    assert (
        found["runtime"]["powerState"],
        found["config"]["hardware"]["memoryMB"],
        found["config"]["firmware"],
    ) == ("poweredOn", 32768, "efi")
    assert cards(vcsim) == ["0000:17:00.0", "0000:28:00.0"]
    extra = {each["key"]: each["value"] for each in found["config"]["extraConfig"]}
    assert extra["pciPassthru.64bitMMIOSizeGB"] == "128"
    assert "customer" not in extra["bfinfra.mark"]
    again = site.apply()
    all_are(again, "kept")
    assert again.writes == 0
    assert site.changes() == {}


def test_one_field_that_changes_is_the_one_that_is_written(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    site.given["bitfusion_server"]["bf-01"]["memory"] = "48GiB"
    assert site.changes() == {SERVER: {"memory"}}
    all_are(site.apply(), "done", "kept")
    assert machine(vcsim)["config"]["hardware"]["memoryMB"] == 48 * 1024
    assert machine(vcsim)["runtime"]["powerState"] == "poweredOn"
    assert site.changes() == {}


def test_what_govc_changes_is_drift_and_is_put_right(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    vcsim.govc("vm.power", "-off", "bf-01")
    vcsim.govc("vm.change", "-vm", "bf-01", "-m", "8192", "-c", "1", "-e", "pciPassthru.64bitMMIOSizeGB=16")
    card = next(
        each for each in vcsim.govc("device.ls", "-vm", "bf-01").split() if each.startswith("pcipassthrough")
    )
    vcsim.govc("device.remove", "-vm", "bf-01", card)
    assert site.changes() == {SERVER: {"power", "memory", "cpus", "mmio", "gpus"}}
    moved = site.drift().found
    assert {each.field for each in moved if each.by and each.at} == {
        "power",
        "memory",
        "cpus",
        "mmio",
        "gpus",
    }, "vcsim's events say who and when"
    all_are(site.apply(), "done", "kept")
    hardware = machine(vcsim)["config"]["hardware"]
    assert (hardware["memoryMB"], hardware["numCPU"], cards(vcsim)) == (
        32768,
        2,
        ["0000:17:00.0", "0000:28:00.0"],
    )
    assert site.changes() == {}


def test_a_server_that_somebody_deletes_is_deployed_again(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    vcsim.govc("vm.destroy", "bf-01")
    assert set(site.changes()) == {SERVER}
    applied(site, vcsim)
    assert site.changes() == {}


def test_destroy_leaves_the_host_as_it_was(site: SiteFile, vcsim: Vcsim) -> None:
    before = passthrough(vcsim)
    applied(site, vcsim)
    all_are(site.apply(destroy=True), "done")
    assert passthrough(vcsim) == before == [(False, False)] * 2
    assert vcsim.govc("find", "-type", "m", "/") == ""
    assert '"bfinfra' not in vcsim.govc(
        "object.collect", "-json", "/DC0/host/DC0_C0/DC0_C0_H0", "customValue"
    )
    assert "Maintenance" not in vcsim.govc("find", "/", "-type", "h", "-runtime.inMaintenanceMode", "true")


def test_somebody_elses_vm_with_the_card_stops_the_plan(site: SiteFile, vcsim: Vcsim) -> None:
    vcsim.govc(
        "vm.create", "-on=false", "-host", "DC0_C0_H0", "-ds", "LocalDS_0", "-net", "VM Network", "theirs"
    )
    attach(vcsim.peers, "theirs", "0000:17:00.0")
    found = site.plan()
    assert found.problems
    assert any("theirs" in str(problem) for problem in found.problems)


def test_a_clone_is_left_alone_when_its_original_is_gone(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    vcsim.govc(
        "vm.clone",
        "-vm",
        "bf-01",
        "-on=false",
        "-host",
        "/DC0/host/DC0_C0/DC0_C0_H0",
        "-ds",
        "LocalDS_0",
        "bf-01-copy",
    )
    config = machine(vcsim)["config"]
    (mark,) = [option["value"] for option in config["extraConfig"] if option["key"] == "bfinfra.mark"]
    assert mark.endswith(f" id={config['instanceUuid']}")
    vcsim.govc(
        "vm.change", "-vm", "bf-01-copy", "-e", f"bfinfra.mark={mark}"
    )  # vCenter's clone brings it along, vcsim's does not
    before = vcsim.govc("vm.info", "-json", "bf-01-copy")
    assert site.plan().pending == ()
    vcsim.govc("vm.destroy", "bf-01")
    with pytest.raises(BfinfraError, match="the VM bf-01-copy is a copy of bitfusion_server/bf-01"):
        site.apply()
    with pytest.raises(BfinfraError, match="the VM bf-01-copy uses the card"):
        site.apply(destroy=True)
    assert vcsim.govc("vm.info", "-json", "bf-01-copy") == before
