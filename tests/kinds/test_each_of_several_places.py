"""A setting of several hosts or clusters is made at each of them, and put back at each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from kinds.of_several import of_several
from rights.given import administrator

from bfinfra.sandbox import Running

FIRST, SECOND = "esx1.small.test", "esx2.small.test"
HOSTS = {FIRST: "/dc/host/farm/esx1.small.test", SECOND: "/dc/host/compute/esx2.small.test"}
CLUSTERS = {"farm": "/dc/host/farm", "compute": "/dc/host/compute"}
Read = Callable[[Any], object]


def option(host: Any) -> object:
    (found,) = host.configManager.advancedOption.QueryOptions("Net.PVRDMAVmknic")
    return found.value


def firewall(host: Any) -> object:
    sets = host.configManager.firewallSystem.firewallInfo.ruleset
    return next(each.enabled for each in sets if each.key == "pvrdma")


def graphics(host: Any) -> object:
    return host.config.graphicsConfig.hostDefaultGraphicsType


def drs(cluster: Any) -> object:
    return {each.key: each.value for each in cluster.configurationEx.drsConfig.option}


def members(switch: Any) -> object:
    """How many uplinks it has, and the host → NICs that are at it."""
    if switch is None:
        return None
    hosts = {
        each.config.host.name: [nic.pnicDevice for nic in each.config.backing.pnicSpec]
        for each in switch.config.host
    }
    return len(switch.config.uplinkPortPolicy.uplinkPortName), hosts


def adapters(host: Any) -> object:
    return {each.spec.ip.ipAddress for each in host.config.network.vnic} - {None}


def values(sandbox: Running, places: dict[str, str], read: Read) -> dict[str, object]:
    with administrator(sandbox) as si:
        find = si.content.searchIndex.FindByInventoryPath
        return {name: read(find(path)) for name, path in places.items()}


def everywhere(
    sandbox: Running, folder: Path, places: dict[str, str], read: Read, **resources: Any
) -> tuple[dict[str, object], dict[str, object]]:
    """What stands in each place before, and after an apply; a destroy puts all of it back."""
    site = yaml.safe_load(EXAMPLES["host_option"].read_text())
    del site["host_option"]
    (folder / "site.yaml").write_text(yaml.safe_dump({**site, **resources}))
    before = values(sandbox, places, read)
    outcome = apply(folder / "site.yaml", sandbox)
    assert made(outcome), endings(outcome)
    after = values(sandbox, places, read)
    assert plan(folder / "site.yaml", sandbox).pending == ()
    outcome = apply(folder / "site.yaml", sandbox, destroy=True)
    assert made(outcome), endings(outcome)
    assert values(sandbox, places, read) == before
    return before, after


@of_several("host_option.hosts", "host_firewall_rule.hosts", "host_graphics.hosts")
@pytest.mark.parametrize(
    ("kind", "fields", "read", "wanted"),
    [
        ("host_option", {"key": "Net.PVRDMAVmknic", "value": "vmk3"}, option, "vmk3"),
        ("host_firewall_rule", {"ruleset": "pvrdma"}, firewall, True),
        ("host_graphics", {"type": "sharedDirect"}, graphics, "sharedDirect"),
    ],
)
def test_a_setting_is_made_on_each_host_and_put_back_on_each(
    sandbox: Running, tmp_path: Path, kind: str, fields: dict[str, Any], read: Read, wanted: object
) -> None:
    before, after = everywhere(sandbox, tmp_path, HOSTS, read, **{kind: {"x": {**fields, "hosts": [*HOSTS]}}})
    assert wanted not in before.values()
    assert after == dict.fromkeys(HOSTS, wanted)


@of_several("cluster_option.clusters")
def test_an_option_is_set_in_each_cluster_and_put_back_in_each(sandbox: Running, tmp_path: Path) -> None:
    given = {"clusters": [*CLUSTERS], "key": "VgpuMMAutomationTimeoutSecs", "value": "-1"}
    before, after = everywhere(sandbox, tmp_path, CLUSTERS, drs, cluster_option={"x": given})
    assert after == {name: {**found, given["key"]: "-1"} for name, found in before.items()}  # type: ignore[dict-item]  # each is a dict


NICS = {FIRST: ["vmnic1"], SECOND: ["vmnic1"]}


@of_several("distributed_switch.hosts", "distributed_switch.uplinks")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_host_is_at_the_switch_with_as_many_uplinks(
    sandbox: Running, tmp_path: Path, count: int
) -> None:
    switch, place = {"hosts": NICS, "uplinks": count}, {"roce": "/dc/network/roce"}
    before, after = everywhere(sandbox, tmp_path, place, members, distributed_switch={"roce": switch})
    assert (before, after) == ({"roce": None}, {"roce": (count, NICS)})


@of_several("vmkernel_adapter.hosts")
def test_each_host_gets_an_adapter_with_its_own_address(sandbox: Running, tmp_path: Path) -> None:
    own = {FIRST: "192.168.0.24", SECOND: "192.168.0.25"}
    before, after = everywhere(
        sandbox,
        tmp_path,
        HOSTS,
        adapters,
        distributed_switch={"roce": {"hosts": NICS}},
        port_group={"high-speed": {"switch": "roce"}},
        vmkernel_adapter={
            "roce": {
                "port_group": "high-speed",
                "hosts": {host: f"{address}/24" for host, address in own.items()},
            }
        },
    )
    assert before == {host: set() for host in HOSTS}
    assert after == {host: {address} for host, address in own.items()}
