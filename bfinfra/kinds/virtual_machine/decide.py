"""From what is to what shall be: the steps of a virtual machine. Pure."""

from __future__ import annotations

import base64
import gzip
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from bfinfra.backends.vcenter.places import Inventory
from bfinfra.backends.vcenter.vm import Attach, Clone, Hardware, Machine
from bfinfra.kinds.virtual_machine.spec import Spec
from bfinfra.model import kind
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Change, Disruption, Later, differences
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Ref
from bfinfra.model.rights import Use, holds
from bfinfra.model.suggest import nearest

MARK = "bfinfra.mark"
GUEST = {"user_data": "guestinfo.userdata", "meta_data": "guestinfo.metadata"}
KEYS = (MARK, *GUEST.values(), *(f"{key}.encoding" for key in GUEST.values()))
ENCODING = "gzip+base64"
NAMES = uuid.uuid5(uuid.NAMESPACE_DNS, "bfinfra.io")


@dataclass(frozen=True, kw_only=True)
class State(kind.State):
    """One machine. `networks`: those that it was given; their port groups go after it."""

    machine: Machine
    networks: tuple[Annotated[str, Ref("port_group", optional=True)], ...] = ()


@dataclass(frozen=True)
class Facts:
    """The inventory; templates by name; cloud-init's files by machine, encoded, or why they can't be read."""

    inventory: Inventory = field(default_factory=Inventory)
    templates: Mapping[str, Machine] = field(default_factory=dict)
    guests: Mapping[str, Mapping[str, str] | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Machine(kind.Step):
    name: str
    moid: str


@dataclass(frozen=True, kw_only=True)
class Make(kind.Step):
    """clone {template} as {name}"""

    rights = (
        holds("machines", "VirtualMachine.Provisioning.DeployTemplate", "VirtualMachine.Provisioning.Clone", "VirtualMachine.Inventory.CreateFromExisting",
              "VirtualMachine.Inventory.Create", "VirtualMachine.Config.AdvancedConfig", "VirtualMachine.Config.AddRemoveDevice", "VirtualMachine.Config.CPUCount",
              "VirtualMachine.Config.Memory", "VirtualMachine.Config.Resource", "VirtualMachine.Config.Settings"),
        holds("pool", "Resource.AssignVMToPool"), holds("datastore", "Datastore.AllocateSpace"), holds("networks", "Network.Assign"),
    )  # fmt: skip

    name: str
    template: str
    clone: Clone | Later

    @property
    def exclusive(self) -> bool:
        """Its name is taken once."""
        return True


@dataclass(frozen=True, kw_only=True)
class Start(_Machine):
    """power on {name}"""

    rights = (holds("machines", "VirtualMachine.Interact.PowerOn"),)


@dataclass(frozen=True, kw_only=True)
class Stop(_Machine):
    """shut down {name}"""

    rights = (holds("machines", "VirtualMachine.Interact.PowerOff"),)
    disruption = Disruption.POWER_CYCLE
    why = "what changes can only change while it is off, or the site says power: off"


@dataclass(frozen=True, kw_only=True)
class Reconfigure(_Machine):
    """reconfigure {name}"""

    rights = (holds("machines", "VirtualMachine.Config.AdvancedConfig", "VirtualMachine.Config.CPUCount", "VirtualMachine.Config.Memory", "VirtualMachine.Config.Resource"),)

    hardware: Hardware


@dataclass(frozen=True, kw_only=True)
class Delete(_Machine):
    """delete {name} with its disks"""

    destructive = True
    rights = (holds("machines", "VirtualMachine.Interact.PowerOff", "VirtualMachine.Inventory.Delete"),)
    uses = (Use.DESTROY,)


def identity(site: str, name: str) -> str:
    """The instance UUID of a machine: the same on every run, another for every site and name."""
    return str(uuid.uuid5(NAMES, f"{site}/virtual_machine/{name}"))


def encoded(text: bytes) -> str:
    """As cloud-init reads it from guestinfo; the same for the same text."""
    return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode()


def decide(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
    """Clone and start; change what can change; delete."""
    if spec is None:
        return () if state is None else (Delete(name=name, moid=state.machine.moid),)
    facts: Facts = around.facts
    guest = facts.guests.get(name, {})
    if isinstance(guest, str):
        raise Refusal("cloud-init's files can't be read", field="cloud_init", why=guest)
    mark = around.mark.seal(spec.applied())
    if state is None:
        return (Make(name=name, template=spec.template, clone=_clone(name, spec, guest, mark, around), changes=differences(None, spec.applied())),)
    return tuple(_settle(name, spec, state, around, (guest, mark)))


def _settle(name: str, spec: Spec, state: State, around: Around, says: tuple[Mapping[str, str], Mark]) -> Iterator[kind.Step]:
    (guest, mark), machine = says, state.machine
    now, wanted = _now(machine, around.facts.inventory), _wanted(spec)
    for part in ("adapters", "vgpus"):
        if now[part] != wanted[part]:
            raise Refusal(f"its {part} are others: {now[part]}", field=part, why="bfinfra gives a machine its devices when it is made", next="take it out of the file, apply, and put it in again")
    drift = [*differences({k: now[k] for k in ("cpus", "memory", "reserve")}, {k: wanted[k] for k in ("cpus", "memory", "reserve")})]
    drift += [Change(f"cloud_init.{field}", "another text", "as in its file") for field, key in GUEST.items() if machine.extra.get(key, "") != guest.get(key, "")]
    drift += [Change(f"extra.{key}", machine.extra.get(key) or None, value) for key, value in spec.extra.items() if machine.extra.get(key, "") != value]
    power = () if machine.on == (spec.power == "on") else (Change("power", "on" if machine.on else "off", spec.power),)
    found = kind.changes(spec, state.mark, (*drift, *power))
    at: dict[str, Any] = {"name": name, "moid": machine.moid, "changes": found}
    hard = any(change.field in ("cpus", "memory", "reserve") for change in drift)
    if machine.on and (hard or spec.power == "off"):
        yield Stop(**at)
    if drift or state.mark != mark:
        extra = {MARK: mark.on(machine.instance_uuid).encode(), **_extra(guest), **spec.extra}
        sizes: dict[str, Any] = {"cpus": spec.cpus, "memory": spec.memory, "reserve": spec.reserved} if hard else {}
        yield Reconfigure(hardware=Hardware(extra=extra, **sizes), **at)
    if spec.power == "on" and (not machine.on or hard):
        yield Start(**at)


def _now(machine: Machine, inventory: Inventory) -> dict[str, Any]:
    names = {network.moid: network.name for network in inventory.networks}
    adapters = [(names.get(nic.network, nic.network), nic.rdma) for nic in machine.nics]
    return {"cpus": machine.cpus, "memory": machine.memory, "reserve": machine.reserved, "adapters": sorted(adapters), "vgpus": sorted(a.profile for a in machine.pci if a.way == "vgpu")}


def _wanted(spec: Spec) -> dict[str, Any]:
    adapters = [(each.network, each.protocol if each.type == "pvrdma" else "") for each in spec.adapters]
    return {"cpus": spec.cpus, "memory": spec.memory, "reserve": spec.reserved, "adapters": sorted(adapters), "vgpus": sorted(spec.vgpus)}


def _extra(guest: Mapping[str, str]) -> dict[str, str]:
    """The texts of guestinfo and their encodings; "" takes a key out."""
    return {name: value for key in GUEST.values() for name, value in ((key, guest.get(key, "")), (f"{key}.encoding", ENCODING if key in guest else ""))}


def _clone(name: str, spec: Spec, guest: Mapping[str, str], mark: Mark, around: Around) -> Clone | Later:
    """What is cloned. Refusal where a part of it isn't there; Later where this site makes a port group first."""
    facts: Facts = around.facts
    inventory = facts.inventory
    networks = []
    for index, adapter in enumerate(spec.adapters):
        need, found = around.needs.get(f"adapters.{index}.network"), inventory.network(adapter.network)
        if need is not None and need.state is not None:
            networks.append(str(need.state.group.moid))
        elif need is not None and need.spec is not None:
            return Later(need.key, "group")
        else:
            networks.append(_there(found, "network", adapter.network, [n.name for n in inventory.networks], f"adapters.{index}.network").moid)
            if adapter.type == "pvrdma" and found is not None and not found.distributed:
                raise Refusal(f"{adapter.network} is no distributed port group", field=f"adapters.{index}.network", why="PVRDMA wants a distributed switch")
    template = _there(facts.templates.get(spec.template), "template or machine", spec.template, facts.templates, "template")
    cluster = _there(inventory.cluster(spec.cluster), "cluster", spec.cluster, [c.name for c in inventory.clusters], "cluster")
    datastore = _there(inventory.datastore(spec.datastore), "datastore", spec.datastore, [d.name for d in inventory.datastores], "datastore")
    folder = _there(inventory.folder(spec.folder, cluster.datacenter), "folder", spec.folder, [f.path for f in inventory.folders], "folder")
    host = _there(inventory.host(spec.host), "host", spec.host, [h.name for h in inventory.hosts], "host").moid if spec.host else ""
    own = identity(around.mark.site, name)
    pairs = list(zip(spec.adapters, networks, strict=True))
    hardware = Hardware(
        cpus=spec.cpus, memory=spec.memory, reserve=spec.reserved or None, instance_uuid=own, drop=tuple(nic.key for nic in template.nics),
        extra={MARK: mark.on(own).encode(), **{k: v for k, v in _extra(guest).items() if v}, **spec.extra}, attach=tuple(Attach(profile=profile) for profile in spec.vgpus),
        add_nics=tuple(moid for adapter, moid in pairs if adapter.type == "vmxnet3"), add_rdma={moid: a.protocol for a, moid in pairs if a.type == "pvrdma"},
    )  # fmt: skip
    return Clone(source=template.moid, name=name, folder=folder.moid, pool=cluster.pool, host=host, datastore=datastore.moid, hardware=hardware)


def _there(found: Any, what: str, name: str | None, known: Any, at: str) -> Any:
    if found is None:
        raise Refusal(f"there is no {what} {name}", field=at, why="vCenter doesn't know it", next=nearest(str(name), known))
    return found
