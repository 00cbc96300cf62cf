"""A vCenter with other people's objects: equal names in other folders, clusters and datacenters, names that are
hard to write, a VM that can't be read, hosts that are disconnected and in maintenance mode.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kinds.by_hand import leaves
from pyVmomi import vim
from rights.given import administrator
from torture.hands import settled

import bfinfra.kinds as registry
from bfinfra.sandbox import SMALL_WORLD, Running

HOST = {"cores": 16, "memory": "128GiB"}
CARD = {"id": "0000:3b:00.0", "vendor": 0x10DE, "device": 0x1EB8, "name": "TU104GL [Tesla T4]"}
BESIDE = [
    {
        "datacenter": "abroad/elsewhere",
        "clusters": {
            "farm": {
                "esx7.abroad.test": {**HOST, "pci": [CARD]},
                "esx8.abroad.test": HOST,
                "esx9.abroad.test": HOST,
            },
            "compute": {"esx6.abroad.test": HOST},
        },
        "datastores": {"local": {"capacity": "1TiB"}, "shared": {"capacity": "4TiB"}},
        "networks": ["VM Network"],
        "templates": {"centos-7.6": {"cluster": "farm", "datastore": "local"}},
    },
    {
        "datacenter": "dc",
        "folder": "others/gpu",
        "clusters": {"farm": {"esx5.small.test": HOST}, "compute": {"esx4.small.test": HOST}},
        "datastores": {"theirs": {"capacity": "1TiB"}},
        "networks": ["Their Network"],
        "templates": {"centos-7.6": {"cluster": "farm", "datastore": "theirs"}},
    },
    {
        "datacenter": "abroad/dc",
        "clusters": {"farm": {"esx3.abroad.test": HOST}},
        "datastores": {"local": {"capacity": "1TiB"}},
        "networks": ["VM Network"],
    },
]
ODD = ("a/b", "50%", "a%2fb%", "  two  blanks ", "Müller-Straße", "line\nbreak", "x" * 80, "- {a: b} #")
"""Names that vCenter takes: with what it escapes, what YAML splits at, and the longest ones."""
TEAMS = ("/dc/vm/teamA", "/dc/vm/teamB", "/abroad/elsewhere/vm")
RESOURCES = ("/dc/host/compute", "/dc/host/others/gpu/farm", "/abroad/elsewhere/host/farm")
KINDS = registry.names("vcenter", "supervisor")
ELSEWHERE = ("/abroad", "/others", "/Their Network", "/datastore/theirs")
"""What stands in the world's file for others."""
LOST, DISCONNECTED, MAINTAINED = "lost-and-found", "esx8.abroad.test", "esx9.abroad.test"


def world(folder: Path) -> Path:
    """The small world's file, with other people's objects beside it."""
    path = folder / "untidy.yaml"
    given = yaml.safe_load(SMALL_WORLD.read_text())
    path.write_text(json.dumps({**given, "beside": BESIDE}))  # which is YAML, without aliases
    return path


@dataclass(frozen=True)
class Names:
    """The names that a site uses, each of which others use, too."""

    machines: frozenset[str] = frozenset()
    pools: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Names:
        """Those of a site."""

        def names(*kinds: str) -> frozenset[str]:
            return frozenset(name for kind in kinds for name in given.get(kind, {}))

        return cls(
            names("virtual_machine", "bitfusion_server"),
            names("resource_pool"),
            names("distributed_switch"),
            names("port_group"),
        )


ROOT = "all that we have"
"""Another name of the root folder, which anybody may give it."""


def fill(sandbox: Running, names: Names) -> None:
    """Makes the twins of these names, and what is hard to write."""
    with administrator(sandbox) as si:
        _machines(si, names.machines)
        for cluster in RESOURCES:
            pools(si, cluster, sorted(names.pools))
        _networks(si, names.switches | {"roce"}, names.groups | {"high-speed"})
        settled(si.content.rootFolder.Rename_Task(ROOT))
        out_of_service(
            si,
            disconnected=f"/abroad/elsewhere/host/farm/{DISCONNECTED}",
            maintained=f"/abroad/elsewhere/host/farm/{MAINTAINED}",
        )
    sandbox.change({"inaccessible": LOST})


def find(si: Any, path: str) -> Any:
    """What is at a path; it has to be there."""
    found = si.content.searchIndex.FindByInventoryPath(path)
    assert found is not None, path
    return found


def out_of_service(si: Any, *, disconnected: str, maintained: str) -> None:
    """Two hosts, by their paths."""
    settled(find(si, disconnected).DisconnectHost_Task())
    settled(find(si, maintained).EnterMaintenanceMode_Task(60))


def _kept(name: str) -> str:
    """`%` is an escape in a name that is sent."""
    return name.replace("%", "%25")


def _machines(si: Any, names: frozenset[str]) -> None:
    for team in TEAMS[:2]:
        find(si, "/dc/vm").CreateFolder(team.rpartition("/")[2])
    inner = find(si, TEAMS[0]).CreateFolder("a%2fb")
    inner.CreateFolder("teamA")
    hers = find(si, "/dc/host/farm/Resources")
    for team in TEAMS:
        pool, store = (find(si, "/abroad/elsewhere/host/farm/Resources"), "shared")
        pool, store = (hers, "local") if team.startswith("/dc") else (pool, store)
        machines(find(si, team), sorted(names), pool, store)
    within = [f"{each}/{name}" for name in sorted(names) for each in ("x", "vm")]  # its name ends like theirs
    machines(inner, (*ODD, *within, LOST), hers, "local")


def machines(folder: Any, names: Iterable[str], pool: Any, store: str) -> None:
    """Small ones, switched off, without network."""
    for name in names:
        spec = vim.vm.ConfigSpec(
            name=_kept(name),
            guestId="other3xLinux64Guest",
            files=vim.vm.FileInfo(vmPathName=f"[{store}]"),
            numCPUs=1,
            memoryMB=64,
        )
        settled(folder.CreateVM_Task(spec, pool))


def pools(si: Any, cluster: str, names: Iterable[str]) -> None:
    """Each within the one before, and the odd ones in the last."""
    share = vim.ResourceAllocationInfo(
        reservation=0, limit=-1, expandableReservation=True, shares=vim.SharesInfo(level="low", shares=1)
    )
    spec = vim.ResourceConfigSpec(cpuAllocation=share, memoryAllocation=share)
    home = find(si, f"{cluster}/Resources")
    for name in names:
        home = home.CreateResourcePool(name, spec)
    for name in ODD:
        home.CreateResourcePool(_kept(name), spec)


def _networks(si: Any, switches: frozenset[str], groups: frozenset[str]) -> None:
    theirs = {"/abroad/elsewhere/network": switches, "/dc/network": {"theirs", "of/others"}}
    for path, name in ((path, each) for path, found in theirs.items() for each in sorted(found)):
        named = {"roce": (*sorted(groups), *ODD), "theirs": ODD}.get(name, ("VM Network 2",))
        switch(si, path, name, named)


def switch(si: Any, path: str, name: str, groups: Iterable[str]) -> None:
    """In a network folder, with these port groups."""
    config = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec(name=name, description="theirs")
    settled(find(si, path).CreateDVS_Task(vim.DistributedVirtualSwitch.CreateSpec(configSpec=config)))
    port = vim.dvs.VmwareDistributedVirtualSwitch.VmwarePortConfigPolicy(
        vlan=vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec(vlanId=7, inherited=False)
    )
    specs = [
        vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
            name=_kept(each), description="theirs", numPorts=4, type="earlyBinding", defaultPortConfig=port
        )
        for each in groups
    ]
    if specs:
        settled(find(si, f"{path}/{name.replace('/', '%2f')}").AddDVPortgroup_Task(specs))


def objects(sandbox: Running) -> dict[str, Any]:
    """All that stands in vCenter, by kind and path."""
    found = sandbox.world()
    rest = {
        f"rest {sort}/{name}": each
        for sort, every in found["rest"].items()
        if isinstance(every, dict)
        for name, each in every.items()
    }
    return {**found["inventory"], **rest}


PATHS = {
    "cluster": "/dc/host/{}",
    "clusters": "/dc/host/{}",
    "datastore": "/dc/datastore/{}",
    "datastores": "/dc/datastore/{}",
    "template": "/dc/vm/{}",
    "network": "/dc/network/{}",
}
"""The fields that name what stands in vCenter, with the paths that lead there."""


def meant(given: Mapping[str, Any], *, paths: bool) -> dict[str, Any]:
    """The same site, which means its own objects among those of others: by their `paths`, or by the names that
    occur once in its datacenter, and paths where they don't. Two datacenters have the name of its own.
    """
    made: dict[str, Any] = {
        kind: _meant(each, () if paths else {"datastore", "datastores", "network"}) if kind in KINDS else each
        for kind, each in given.items()
    }
    if "supervisor" in made:
        made["supervisor"] = {
            PATHS["cluster"].format(each): spec for each, spec in made["supervisor"].items()
        }
    scope = {"vcenter": {**given["vcenter"], "datacenter": "/dc"}} if "vcenter" in given else {}
    return {**made, **scope}


def _meant(value: Any, bare: Container[str], field: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _meant(each, bare, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_meant(each, bare, field) for each in value]
    return PATHS[field].format(value) if field in PATHS and field not in bare else value


class Others:
    """What wasn't in the `tidy` world, as it stands now: other people's."""

    def __init__(self, sandbox: Running, tidy: Mapping[str, Any]) -> None:
        found = objects(sandbox)
        own = {name for name in tidy if not any(each in name for each in ELSEWHERE)}
        self.objects = {name: found[name] for name in found.keys() - own}

    def are_in(self, sandbox: Running) -> None:
        """All of them are there as they were, each leaf of them."""
        now = objects(sandbox)
        assert self.objects.keys() <= now.keys(), f"gone: {sorted(self.objects.keys() - now.keys())}"
        for name, before in sorted(self.objects.items()):
            old, new = leaves(before, name), leaves(now[name], name)
            differ = {at for at in {*old, *new} if old.get(at) != new.get(at)}
            assert not differ, {at: (old.get(at), new.get(at)) for at in sorted(differ)}
