"""Virtual machines on vcsim, judged with govc: cloned from a template onto a distributed port group, changed
behind bfinfra's back, destroyed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from peers.conftest import Vcsim, vcsim_site
from peers.site_files import SiteFile, all_are, endings

NODE = "virtual_machine/sckubw01"


@pytest.fixture
def site(vcsim: Vcsim, tmp_path: Path, ova: Path) -> SiteFile:
    """One worker of the guide, and the template that it is cloned from."""
    vcsim.govc(
        "vm.create",
        "-on=false",
        "-host",
        "DC0_C0_H0",
        "-ds",
        "LocalDS_0",
        "-net",
        "VM Network",
        "-g",
        "centos7_64Guest",
        "centos-7.6",
    )
    vcsim.govc("vm.markastemplate", "centos-7.6")
    site = vcsim_site(vcsim.peers, tmp_path, ova)
    site.given = {name: site.given[name] for name in ("site", "vcenter")}
    site.put("user-data", "#cloud-config\nntp: {enabled: true}\n")
    site.given["virtual_machine"] = {
        "sckubw01": {
            "template": "centos-7.6",
            "cluster": "DC0_C0",
            "host": "DC0_C0_H0",
            "datastore": "LocalDS_0",
            "cpus": "2",  # vcsim's hosts have no more, and no vGPUs
            "memory": "24GiB",
            "role": "worker",
            "adapters": [{"network": "VM Network"}, {"network": "DC0_DVPG0", "type": "pvrdma"}],
            "cloud_init": {"user_data": "user-data"},
        }
    }
    return site


def applied(site: SiteFile, vcsim: Vcsim) -> None:
    """Applied until nothing is left; the guest starts once its VM is on: vcsim has none."""
    first = site.apply(deadline=1)
    assert endings(first)[NODE].startswith("still-waiting"), endings(first)
    vcsim.govc(
        "vm.change",
        "-vm",
        "sckubw01",
        "-e",
        "SET.guest.toolsRunningStatus=guestToolsRunning",
        "-e",
        "SET.guest.ipAddress=172.16.7.51",
    )
    all_are(site.apply(), "done", "kept")


def config(vcsim: Vcsim) -> dict[str, Any]:
    (found,) = json.loads(vcsim.govc("vm.info", "-json", "sckubw01"))["virtualMachines"]
    return found["config"] | {"on": found["runtime"]["powerState"] == "poweredOn"}


def test_govc_sees_the_clone_with_all_it_was_given(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    found = config(vcsim)
    assert (
        found["on"],
        found.get("template", False),
        found["hardware"]["numCPU"],
        found["hardware"]["memoryMB"],
    ) == (True, False, 2, 24576)
    assert found["memoryReservationLockedToMax"]
    cards = json.loads(vcsim.govc("device.info", "-vm", "sckubw01", "-json", "ethernet-*"))["devices"]
    groups = [each["backing"].get("port", {}).get("portgroupKey", "") for each in cards]
    assert [bool(key) for key in groups] == [False, True]
    assert [each.get("deviceProtocol") for each in cards] == [None, "rocev2"]
    assert "guestinfo.userdata" in {each["key"] for each in found["extraConfig"]}
    again = site.apply()
    all_are(again, "kept")
    assert (again.writes, site.changes()) == (0, {})


def test_what_govc_changes_is_drift_and_is_put_right(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    vcsim.govc("vm.power", "-off", "sckubw01")
    vcsim.govc("vm.change", "-vm", "sckubw01", "-c", "1", "-e", "guestinfo.userdata=other")
    assert site.changes() == {NODE: {"power", "cpus", "cloud_init.user_data"}}
    all_are(site.apply(), "done")
    assert (config(vcsim)["on"], config(vcsim)["hardware"]["numCPU"], site.changes()) == (True, 2, {})


def test_destroy_leaves_the_template(site: SiteFile, vcsim: Vcsim) -> None:
    applied(site, vcsim)
    all_are(site.apply(destroy=True), "done")
    assert vcsim.govc("find", "-type", "m", "/").split() == ["/DC0/vm/centos-7.6"]
