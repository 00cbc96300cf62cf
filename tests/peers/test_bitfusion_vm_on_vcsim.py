"""What is set of a VM for the Bitfusion plug-in, on vcsim: looked at and meddled with by govc."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from peers.conftest import Vcsim, vcsim_site
from peers.site_files import SiteFile, all_are

DESK, OPTION, OTHER = "bitfusion_vm/desk", "example.bitfusion.client", "example.bitfusion.mode"


@pytest.fixture
def site(vcsim: Vcsim, tmp_path: Path, ova: Path) -> SiteFile:
    """A VM of somebody's, which runs with its tools, and has one of the options already."""
    vcsim.govc(
        "vm.create", "-cluster", "DC0_C0", "-ds", "LocalDS_0", "-net", "VM Network", "-on=false", "desk"
    )
    vcsim.govc(
        "vm.change",
        "-vm",
        "desk",
        "-e",
        f"{OTHER}=before",
        "-e",
        "SET.guest.toolsRunningStatus=guestToolsRunning",
    )
    vcsim.govc("vm.power", "-on", "desk")
    found = vcsim_site(vcsim.peers, tmp_path, ova)
    for kind in ("gpu_host", "bitfusion_server"):
        del found.given[kind]
    found.given["bitfusion_vm"] = {"desk": {"vm": "desk", "settings": {OPTION: "true", OTHER: "client"}}}
    return found


def seen(vcsim: Vcsim) -> tuple[str, dict[str, str]]:
    (machine,) = json.loads(vcsim.govc("vm.info", "-json", "-e", "desk"))["virtualMachines"]
    extra: dict[str, Any] = {each["key"]: each["value"] for each in machine["config"]["extraConfig"] or ()}
    return machine["runtime"]["powerState"], {
        key: value for key, value in extra.items() if key.startswith(("example.", "bfinfra.")) and value
    }


def starts(vcsim: Vcsim) -> list[str]:
    """What happened to it, as govc reads the events."""
    return [
        line for line in vcsim.govc("events", "-n", "200", "vm/desk").splitlines() if "is powered o" in line
    ]


def test_the_options_are_set_while_it_is_off_are_drift_when_govc_changes_them_and_are_put_back(
    site: SiteFile, vcsim: Vcsim
) -> None:
    all_are(site.apply(), "done", "kept")
    power, options = seen(vcsim)
    assert (power, options[OPTION], options[OTHER]) == ("poweredOn", "true", "client")
    again = site.apply()
    all_are(again, "kept")
    assert (again.writes, site.changes()) == (0, {})
    vcsim.govc("vm.change", "-vm", "desk", "-e", f"{OPTION}=false")
    (found,) = site.drift().found
    assert (str(found.key), found.field, found.now, found.wanted) == (
        DESK,
        f"settings.{OPTION}",
        "false",
        "true",
    )
    all_are(site.apply(), "done", "kept")
    assert seen(vcsim)[1][OPTION] == "true"
    site.given["bitfusion_vm"]["desk"]["settings"] = {OTHER: "client"}
    all_are(site.apply(), "done", "kept")
    assert OPTION not in seen(vcsim)[1], "an option that was not there before is taken away"
    all_are(site.apply(destroy=True), "done", "kept")
    assert seen(vcsim) == ("poweredOn", {OTHER: "before"})


def test_a_vm_that_is_off_is_set_and_started_once(site: SiteFile, vcsim: Vcsim) -> None:
    vcsim.govc("vm.power", "-off", "desk")
    before = len(starts(vcsim))
    all_are(site.apply(), "done", "kept")
    assert seen(vcsim)[0] == "poweredOn"
    assert len(starts(vcsim)) == before + 1
