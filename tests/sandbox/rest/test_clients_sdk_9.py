"""What bfinfra and the sandbox say to each other over REST from vSphere 9.0 on, judged by the official SDK's own
table of operations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES
from recorder import Recorder, run

from bfinfra.sandbox import Running
from bfinfra.testing import world

WORLD_9 = Path(__file__).parents[2] / "kinds/vcenter-9.yaml"


@world(WORLD_9)
def test_every_message_in_the_life_of_a_namespace_with_zones_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    site = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text())
    team = {"cluster": "compute", "vm_classes": ["best-effort-small"], "zones": ["zone-1", "zone-2"]}
    site["supervisor_namespace"] = {"team-a": {**team, "reserved": {"best-effort-small": 4}}}
    run(site, tmp_path, sandbox, recorder)
    site["supervisor_namespace"]["team-a"]["zones"] = ["zone-1"]
    run(site, tmp_path, sandbox, recorder)
    run(site, tmp_path, sandbox, recorder, destroy=True)
    instances, supervisors = "/vcenter/namespaces/instances", "/vcenter/namespace-management/supervisors"
    assert recorder.seen() >= {
        f"POST {instances}/v2",
        f"GET {instances}/v2/{{namespace}}",
        f"PATCH {instances}/{{namespace}}",
        f"DELETE {instances}/{{namespace}}/zones/{{zone}}",
        f"GET {supervisors}/summaries",
        f"GET {supervisors}/{{supervisor}}/topology",
    }


ZONES = {"zones": ["rack-1", "rack-2", "rack-3"]}
FOUNDATION = {"foundation": {"size": "medium", "storage": "gold"}}
AVI = {
    "avi": {
        "server": "10.2.0.220:443",
        "username": "admin",
        "password": {"env": "HAPROXY_PASSWORD"},
        "authority": "ca.pem",
    }
}


def supervisor(networking: str) -> dict[str, Any]:
    """The example's site in a vCenter of 9.0, with another way to the network."""
    site = yaml.safe_load(EXAMPLES["supervisor"].read_text())
    del site["distributed_switch"], site["port_group"]
    enable = site["supervisor"]["farm"]["enable"]
    vds = enable["vds"]
    if networking == "vpc":
        del enable["vds"]
        enable |= {"management": {"network": "VM Network"}, "vpc": {"private": ["172.30.0.0/20"]}}
    elif networking != "haproxy":
        del vds["haproxy"]
        vds |= AVI if networking == "avi" else FOUNDATION
    if networking == "foundation across zones":
        enable |= ZONES
    return site


@pytest.mark.thorough
@world(WORLD_9)
@pytest.mark.parametrize("networking", ["haproxy", "avi", "foundation", "foundation across zones", "vpc"])
def test_every_message_in_the_life_of_a_supervisor_by_the_api_of_supervisors_fits(
    networking: str, sandbox: Running, tmp_path: Path
) -> None:
    recorder = Recorder()
    site = supervisor(networking)
    farm = site["supervisor"]["farm"]
    run(site, tmp_path, sandbox, recorder)
    farm |= {"size": "large", "content_library": "tkr", "dns": {"workloads": ["10.2.0.3"]}}
    farm["enable"]["storage"]["images"] = "silver"
    if "foundation" in networking:
        farm["enable"]["vds"]["foundation"] = {"availability": "single_node", "storage": "silver"}
        farm["enable"]["vds"]["services"]["count"] = 30
    if networking == "vpc":
        farm["enable"]["vpc"]["private"].append("172.31.0.0/20")
    run(site, tmp_path, sandbox, recorder)
    kept = len([each for each in recorder.kept if each.method == "PATCH"])
    run(site, tmp_path, sandbox, recorder)
    assert len([each for each in recorder.kept if each.method == "PATCH"]) == kept, "what was changed is so"
    run(site, tmp_path, sandbox, recorder, destroy=True)
    clusters, supervisors = (f"/vcenter/namespace-management/{each}" for each in ("clusters", "supervisors"))
    enabling = (
        f"POST {supervisors}?action=enable_on_zones"
        if "zones" in networking
        else f"POST {supervisors}/{{cluster}}?action=enable_on_compute_cluster"
    )
    edges = f"{supervisors}/{{supervisor}}/networks/edges"
    balancer = {f"GET {edges}", f"PATCH {edges}/{{edge}}"} if "foundation" in networking else set[str]()
    assert recorder.seen() >= {
        enabling,
        f"GET {clusters}/{{cluster}}",
        f"PATCH {clusters}/{{cluster}}",
        f"POST {clusters}/{{cluster}}?action=disable",
        *balancer,
    }
