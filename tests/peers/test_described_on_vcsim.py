"""What others made on vcsim, with govc, is described; to adopt it changes no field."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest
from peers.conftest import Vcsim, vcsim_site
from peers.found import USER, Peers
from peers.own_vcsim import session
from peers.site_files import RUN_CONTEXT
from pyVim.task import WaitForTask
from pyVmomi import vim

import bfinfra
from bfinfra.app import init
from bfinfra.model.compare import UNFINISHED
from bfinfra.model.initial import Initial

CLUSTER = "/DC0/host/DC0_C0"
EXPECTED = {"distributed_switch", "gpu_host", "port_group", "resource_pool", "virtual_machine"}


def switch(peers: Peers) -> None:
    """By pyVmomi as shipped."""
    dvs = vim.dvs.VmwareDistributedVirtualSwitch
    uplinks = vim.DistributedVirtualSwitch.NameArrayUplinkPortPolicy(uplinkPortName=["Uplink 1"])
    config = dvs.ConfigSpec(name="theirs", maxMtu=9000, uplinkPortPolicy=uplinks)
    spec = vim.DistributedVirtualSwitch.CreateSpec(configSpec=config)
    group = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(name="theirs-31", type="earlyBinding", numPorts=8)
    vlan = dvs.VlanIdSpec(vlanId=31, inherited=False)
    group.defaultPortConfig = dvs.VmwarePortConfigPolicy(vlan=vlan)
    with session(peers) as si:
        WaitForTask(si.content.searchIndex.FindByInventoryPath("DC0/network").CreateDVS_Task(spec))
        found = si.content.searchIndex.FindByInventoryPath("DC0/network/theirs")
        WaitForTask(found.AddDVPortgroup_Task([group]))


@pytest.fixture
def vcenter(vcsim: Vcsim, tmp_path: Path) -> dict[str, object]:
    """The settings of a site on it."""
    host, _, port = vcsim.peers.vcsim.rpartition(":")
    pem = ssl.get_server_certificate((host, int(port)))
    (tmp_path / "password").write_text(vcsim.peers.password)
    return {
        "server": vcsim.peers.vcsim,
        "username": USER,
        "password": {"file": "password"},
        "trust": {"sha256": hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()},
    }


def made_by_hand(vcsim: Vcsim) -> None:
    """Pools and a machine, and a switch with a port group: govc's build here makes none."""
    vcsim.govc("pool.create", "-cpu.reservation", "1000", "-mem.limit", "4096", f"{CLUSTER}/Resources/theirs")
    vcsim.govc("pool.create", f"{CLUSTER}/Resources/theirs/inner")
    vcsim.govc(
        "vm.create",
        *("-on=false", "-host", f"{CLUSTER}/DC0_C0_H0", "-ds", "LocalDS_0", "-net", "VM Network"),
        *("-c", "2", "-m", "1024", "-disk", "1GB", "by-hand"),
    )


def test_what_govc_made_is_described_and_to_adopt_it_changes_no_field(
    vcsim: Vcsim, vcenter: dict[str, object], tmp_path: Path
) -> None:
    made_by_hand(vcsim)
    switch(vcsim.peers)
    site = init.empty("mine", vcenter, tmp_path)
    found = init.described(site, vcenter, context=RUN_CONTEXT)
    assert found.differing == {}, found.text
    path = tmp_path / "site.yaml"
    path.write_text(found.text)
    site = bfinfra.load(path)
    assert {key.kind for key in site.resources} >= EXPECTED, found.left_out
    plan = bfinfra.plan(site, adopt=frozenset(site.resources), context=RUN_CONTEXT)
    assert (plan.problems, dict(plan.unreadable)) == ((), {})
    assert [
        (str(item.key), change.field)
        for item in plan.items
        for change in item.changes
        if change.field != UNFINISHED
    ] == []


def test_a_bitfusion_server_is_described_unless_it_is_another_sites(
    vcsim: Vcsim, vcenter: dict[str, object], ova: Path, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    theirs = vcsim_site(vcsim.peers, tmp_path / "theirs", ova)
    assert theirs.apply(deadline=2).ending == "still-waiting"  # its guests have no tools

    def described(name: str) -> Initial:
        site = init.empty(name, vcenter, tmp_path)
        return init.described(site, vcenter, only=frozenset({"bitfusion_server"}), context=RUN_CONTEXT)

    assert described("mine").left_out == {
        "bitfusion_server/bf-01": "it belongs to bitfusion_server/bf-01 of the site peers-vcsim"
    }
    found = described("peers-vcsim")
    assert {*map(str, found.resources)} == {"gpu_host/DC0_C0_H0", "bitfusion_server/bf-01"}, found.left_out
    assert "gpus: 2" in found.text
    assert "of-the-customer-1!" not in found.text
