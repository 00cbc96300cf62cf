"""Distributed switches: one bulk read, and one small method for each write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import properties, refs, tree
from bfinfra.backends.vcenter.esxi import lost_host
from bfinfra.backends.vcenter.inventory import Paths, datacenters
from bfinfra.backends.vcenter.names import sent
from bfinfra.backends.vcenter.networks import GroupPlan, Networks, PortGroup, Switch, SwitchPlan
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.vcenter.tasks import Tasks

VDS, GROUP = vim.DistributedVirtualSwitch, vim.dvs.DistributedVirtualPortgroup
VMWARE = vim.dvs.VmwareDistributedVirtualSwitch
THERE: Mapping[type[Any], Sequence[str]] = {
    VDS: ["name", "parent", "uuid", "config", "summary.hostMember"],
    GROUP: ["name", "key", "config", "vm"],
    vim.Datacenter: ["name", "parent", "networkFolder"],
    vim.Folder: ["name", "parent"],
}
AROUND: Mapping[type[Any], Sequence[str]] = {vim.HostSystem: ["name", "runtime.connectionState"]}


class Switches:
    """The distributed switches of one vCenter, and their port groups."""

    def __init__(self, session: SoapSession, tasks: Tasks) -> None:
        self._session = session
        self._tasks = tasks

    def read(self, *, context: bool) -> Networks:
        """All switches and port groups, and the site's datacenter or all; `context`: also hosts. Raises
        NoDatacenter.
        """
        kinds = {**THERE, **(AROUND if context else {})}
        rows = self._session.read(
            lambda content: properties.below(content, content.rootFolder, kinds, properties.whole)
        )
        paths = Paths(rows)
        centers = {each.moid: each.where for each in datacenters(rows, paths, self._session)}
        return Networks(
            tuple(_switch(row, paths) for row in rows if isinstance(row.ref, VDS)),
            tuple(_group(row) for row in rows if isinstance(row.ref, GROUP)),
            {row.name: row.moid for row in rows if isinstance(row.ref, vim.HostSystem)},
            {centers[row.moid]: refs.moid(row["networkFolder"]) for row in rows if row.moid in centers},
            next(iter(centers.values())) if self._session.settings.datacenter else "",
            {
                row.moid: why
                for row in rows
                if isinstance(row.ref, vim.HostSystem)
                and (why := lost_host(row.name, str(row["runtime.connectionState"] or "disconnected")))
            },
        )

    def create(self, folder: str, plan: SwitchPlan) -> None:
        """Make a switch in a network folder. Raises Exists if the name is taken."""

        def start(content: vim.ServiceInstanceContent) -> Any:
            product = vim.dvs.ProductSpec(version=plan.version) if plan.version else None
            spec = vim.DistributedVirtualSwitch.CreateSpec(
                configSpec=_config(content, plan), productInfo=product
            )
            return refs.refer(content, vim.Folder, folder).CreateDVS_Task(spec)

        self._tasks.run(start, f"creating the switch {plan.name}")

    def reconfigure(self, moid: str, plan: SwitchPlan, version: str) -> None:
        """Set the description, and what the plan has of MTU, uplinks, hosts and their NICs. Raises Conflict
        if the configuration is no longer of this version.
        """

        def start(content: vim.ServiceInstanceContent) -> Any:
            switch = refs.refer(content, VDS, moid)
            now = properties.one(content, switch, ["config.host"])
            spec = _config(content, plan, now["config.host"] or ())
            spec.name, spec.configVersion = None, version or None
            return switch.ReconfigureDvs_Task(spec)

        self._tasks.run(start, f"changing the switch {plan.name}")

    def remove(self, moid: str, *, group: bool = False) -> None:
        """Delete a switch with its port groups, or one port group."""
        kind = GROUP if group else VDS
        self._tasks.run(lambda content: refs.refer(content, kind, moid).Destroy_Task(), f"removing {moid}")

    def create_group(self, switch: str, plan: GroupPlan) -> None:
        """Make a port group. Raises Exists if the name is taken."""

        def start(content: vim.ServiceInstanceContent) -> Any:
            return refs.refer(content, VDS, switch).AddDVPortgroup_Task(
                [_group_config(plan, type="earlyBinding")]
            )

        self._tasks.run(start, f"creating the port group {plan.name}")

    def reconfigure_group(self, moid: str, plan: GroupPlan, version: str) -> None:
        """Set the description, and what the plan has of VLAN and ports. Raises Conflict if the configuration
        is no longer of this version.
        """

        def start(content: vim.ServiceInstanceContent) -> Any:
            group = refs.refer(content, GROUP, moid)
            spec = _group_config(plan)
            spec.name, spec.configVersion = None, version or None
            return group.ReconfigureDVPortgroup_Task(spec)

        self._tasks.run(start, f"changing the port group {plan.name}")


def _config(content: vim.ServiceInstanceContent, plan: SwitchPlan, now: Iterable[Any] = ()) -> Any:
    """`now`: the hosts of the switch, as it has them."""
    spec = VMWARE.ConfigSpec(name=sent(plan.name), description=plan.description, maxMtu=plan.mtu)
    if plan.uplinks is not None:
        spec.uplinkPortPolicy = vim.DistributedVirtualSwitch.NameArrayUplinkPortPolicy(
            uplinkPortName=list(plan.uplinks)
        )
    there = {refs.moid(each.config.host): _nics(each.config) for each in now}
    members = [
        _member(content, host, "add" if host in plan.joining else "edit", nics, there.get(host, {}))
        for host, nics in plan.hosts.items()
    ]
    spec.host = [*members, *(_member(content, host, "remove", ()) for host in sorted(plan.leaving))]
    return spec


def _member(
    content: vim.ServiceInstanceContent,
    host: str,
    operation: str,
    nics: Sequence[str],
    there: Mapping[str, object] = MappingProxyType({}),
) -> Any:
    """A host with its NICs; one that is `there` stays on its uplink."""
    made = vim.dvs.HostMember.ConfigSpec(operation=operation, host=refs.refer(content, vim.HostSystem, host))
    if operation != "remove":
        made.backing = vim.dvs.HostMember.PnicBacking(
            pnicSpec=[there.get(nic) or vim.dvs.HostMember.PnicSpec(pnicDevice=nic) for nic in nics]
        )
    return made


def _nics(config: Any) -> dict[str, object]:
    """The NICs of a host on a switch, by name."""
    return {spec.pnicDevice: spec for spec in getattr(config.backing, "pnicSpec", None) or ()}


def _group_config(plan: GroupPlan, **more: str) -> Any:
    spec = GROUP.ConfigSpec(name=sent(plan.name), description=plan.description, numPorts=plan.ports, **more)
    if plan.vlan is not None:
        vlan = VMWARE.VlanIdSpec(vlanId=plan.vlan, inherited=False)
        spec.defaultPortConfig = VMWARE.VmwarePortConfigPolicy(vlan=vlan)
    return spec


def _switch(row: Row, paths: Paths) -> Switch:
    config = row["config"]
    named = {refs.moid(member): () for member in row["summary.hostMember"] or ()}
    configs = [member.config for member in getattr(config, "host", None) or ()]
    nics = {refs.moid(each.host): tuple(_nics(each)) for each in configs if each.host is not None}
    policy, product = getattr(config, "uplinkPortPolicy", None), getattr(config, "productInfo", None)
    return Switch(
        moid=row.moid,
        name=row.name,
        uuid=row["uuid"] or "",
        folder=refs.moid(row["parent"]),
        description=getattr(config, "description", "") or "",
        mtu=getattr(config, "maxMtu", None) or 0,
        version=getattr(product, "version", None) or "",
        uplinks=tuple(getattr(policy, "uplinkPortName", None) or ()),
        hosts={**named, **nics},
        gone=sum(each.host is None for each in configs),
        ref=row.ref,
        where=paths.of(row),
        datacenter=paths.datacenter(row),
        version_of_config=getattr(config, "configVersion", None) or "",
    )


def _group(row: Row) -> PortGroup:
    config = row["config"]
    vlan = getattr(getattr(config, "defaultPortConfig", None), "vlan", None)
    return PortGroup(
        moid=row.moid,
        name=row.name,
        key=row["key"] or row.moid,
        switch=refs.moid(config.distributedVirtualSwitch),
        description=config.description or "",
        vlan=vlan.vlanId if vlan is not None and tree.is_a(vlan, VMWARE.VlanIdSpec) else None,
        ports=config.numPorts or 0,
        uplink=bool(getattr(config, "uplink", None)) or "DVUplinks" in (row["name"] or ""),
        vms=tuple(refs.moid(vm) for vm in row["vm"] or ()),
        ref=row.ref,
        version=config.configVersion or "",
    )
