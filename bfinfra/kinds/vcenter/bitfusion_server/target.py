"""The target of a server's VM: the spec with every default and name resolved; and the step that makes
it. Raises Refusal if that fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.backends.ova import Ova
from bfinfra.backends.vcenter.esxi import HostDetail
from bfinfra.backends.vcenter.places import Datastore, Inventory, lookup
from bfinfra.backends.vcenter.vm import Attach
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine import devices
from bfinfra.kinds.vcenter.base.pools import pool_named
from bfinfra.kinds.vcenter.bitfusion_server import gpus, properties
from bfinfra.kinds.vcenter.bitfusion_server.spec import Ova as OvaSpec
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import (
    MMIO,
    MMIO_SIZE,
    OVA,
    BitfusionServerFacts,
    State,
    release,
)
from bfinfra.model.awaited import Absent, held
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Problem, Refusal
from bfinfra.model.gpus import GIB
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds
from bfinfra.model.secret import Secret
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest
from bfinfra.model.units import bytes_short, bytes_text


@dataclass(frozen=True, kw_only=True)
class Adapter(devices.Adapter):
    """One network adapter. `ovf`: the OVA's name for its network, "" if the OVA has no such network."""

    ovf: str


def there(thing: str | Unknown) -> str:
    """The id of a network or pool. When a step runs, every id is known."""
    assert isinstance(thing, str), thing
    return thing


@dataclass(frozen=True, kw_only=True)
class Target:
    """Ids as in vCenter, sizes in bytes. `release`: the identity of the appliance."""

    ova: OvaSpec
    release: str
    library: tuple[str, str] | None
    """Name of the content library to deploy from, and the datastore for the library if it is created."""
    host: str
    datastore: str
    folder: str
    pool: str | Unknown
    thin: bool
    cpus: int
    memory: int | None
    """None: the OVA's value, for a server without GPUs."""
    disk: int | None
    attach: tuple[Attach, ...]
    extra: Mapping[str, str]
    adapters: tuple[Adapter, ...]
    properties: Mapping[str, str | Secret] = field(default_factory=dict)

    @property
    def places(self) -> frozenset[str]:
        """The ids of the folder, pool and datastore in which it is created."""
        return frozenset(
            {
                self.host,
                self.datastore,
                self.folder,
                *(each for each in (self.pool, *(a.network for a in self.adapters)) if isinstance(each, str)),
            }
        )


@dataclass(frozen=True, kw_only=True)
class Deploy(Step):
    """verify the OVA and import it as VM {name}"""

    rights = (
        holds("pool", "Resource.AssignVMToPool", "VApp.Import"),
        holds("networks", "Network.Assign"),
        holds("datastore", "Datastore.AllocateSpace"),
        holds(
            "folder",
            "VApp.Import",
            "VirtualMachine.Inventory.Create",
            "VirtualMachine.Config.AddNewDisk",
            "VirtualMachine.Config.AdvancedConfig",
        ),
        holds(
            "library",
            "ContentLibrary.CreateLocalLibrary",
            "ContentLibrary.AddLibraryItem",
            "ContentLibrary.UpdateLibraryItem",
            "ContentLibrary.UpdateSession",
        ),
    )

    name: str
    target: Target
    mark: str

    @property
    def exclusive(self) -> bool:
        """True for an import, which fails if the folder has a VM of that name, or if the OVA or a place has
        changed. Not verified for a deployment from a library.
        """
        return self.target.library is None


def resolve(name: str, spec: Spec, state: State | None, context: PlanContext, *, anew: bool) -> Target:
    """The target. Raises Refusal, naming the field, for whatever is unknown, missing or too much. `anew`: for
    a VM to create, perhaps instead of the one in `state`.
    """
    facts: BitfusionServerFacts = context.facts
    ova = _ova(name, spec, facts, anew=anew)
    detail = _host(spec, context)
    cluster = next((c for c in facts.inventory.clusters if c.moid == detail.cluster), None)
    if cluster is None:
        raise Refusal(
            f"{spec.host} is in no cluster of this datacenter",
            field="host",
            next="correct vcenter.datacenter",
        )
    adapters = _adapters(spec, ova, detail, context)
    if not anew and name in facts.noted:
        adapters = _as_they_are(adapters, state)
    cards, card_memory = gpus.assign(name, spec, state, context)
    datastore = _datastore(spec, state, detail, facts.inventory, ova.least)
    return Target(
        ova=spec.ova,
        release=release(ova) if ova.descriptor else _release(state),
        library=_library(spec, facts.inventory, cluster.datacenter),
        host=detail.moid,
        datastore=datastore.moid,
        folder=_folder(spec, facts.inventory, cluster.datacenter),
        pool=pool_named(spec.resource_pool or "", "resource_pool", cluster, facts.inventory, context),
        thin=spec.disk_provisioning == "thin",
        cpus=spec.cpus or gpus.cpus_for(spec.gpus),
        memory=_memory(spec, card_memory),
        disk=_disk(spec, ova),
        attach=cards,
        extra=_window(spec, card_memory),
        adapters=adapters,
        properties=properties.checked(name, spec, ova, facts, None if anew else state),
    )


def _ova(name: str, spec: Spec, facts: BitfusionServerFacts, *, anew: bool) -> Ova:
    if not anew and name in facts.noted:
        return facts.noted[name]
    if isinstance(problem := facts.ovas.get(spec.ova.text), Absent):
        raise held(problem, "ova.file" if spec.ova.file else "ova.trust.ca_file")
    found = facts.damaged.get(name) or facts.ovas.get(spec.ova.text) or Problem("it was not read")
    if isinstance(found, Problem):
        why = "; ".join(part for part in (found.what, found.why) if part)
        raise Refusal(
            f"the OVA {spec.ova.text} can't be used",
            field="ova.file" if spec.ova.file else "ova.url",
            why=why,
            next=found.next or "download it again",
        )
    return found


def _release(state: State | None) -> str:
    """The identity of the appliance that an existing VM was made from, by its note; "" without one."""
    return state.machine.extra.get(OVA, "") if state else ""


def _as_they_are(adapters: tuple[Adapter, ...], state: State | None) -> tuple[Adapter, ...]:
    """The adapters in the order of the VM's own, if the OVA that gives the order is not there."""
    there = [nic.network for nic in state.machine.nics] if state else []
    return tuple(sorted(adapters, key=lambda a: there.index(a.network) if a.network in there else len(there)))


def _library(spec: Spec, inventory: Inventory, datacenter: str) -> tuple[str, str] | None:
    if spec.library is None:
        return None
    text = spec.library.datastore
    found = the(inventory.datastore(text, datacenter), "datastore", text, "library.datastore")
    return spec.library.name, found.moid


def _host(spec: Spec, context: PlanContext) -> HostDetail:
    need = context.needs.get("host")
    if need is None or need.state is None:
        raise Refusal(
            f"there is no host {spec.host}",
            field="host",
            why="vCenter doesn't know it",
            next="correct the name",
        )
    detail: HostDetail = need.state.detail
    return detail


def _memory(spec: Spec, card_memory: int | None) -> int | None:
    if spec.memory is not None:
        return spec.memory
    if card_memory is None:
        raise Refusal(
            "the GPUs' memory is not known",
            field="memory",
            why="so no default can be computed",
            next="write gpu_memory or memory",
        )
    return gpus.memory_for(card_memory) if spec.gpus else None


def _window(spec: Spec, card_memory: int | None) -> dict[str, str]:
    if spec.gpus == 0:
        return {}
    if spec.mmio is None and card_memory is None:
        raise Refusal(
            "the GPUs' memory is not known",
            field="mmio",
            why="so the MMIO window can't be computed",
            next="write gpu_memory or mmio",
        )
    size = spec.mmio if spec.mmio is not None else gpus.mmio_for(card_memory or 0)
    return {MMIO: "TRUE", MMIO_SIZE: str(-(-size // GIB))}


def _disk(spec: Spec, ova: Ova) -> int | None:
    capacity = ova.disks[0].capacity if ova.disks else 0
    if spec.disk is not None and spec.disk < capacity:
        raise Refusal(
            f"a disk of {bytes_text(spec.disk)} is too small",
            field="disk",
            why=f"the OVA's has {bytes_text(capacity)}",
            next="raise it, or leave it out",
        )
    return spec.disk


def _datastore(
    spec: Spec, state: State | None, detail: HostDetail, inventory: Inventory, size: int
) -> Datastore:
    reached = [d for d in inventory.datastores if d.moid in detail.datastores and d.accessible]
    if spec.datastore is None:
        here = [d for d in reached if state is not None and d.moid in state.machine.datastores] or reached
        if len(here) != 1:
            raise Refusal(
                f"{spec.host} reaches {len(here)} datastores",
                field="datastore",
                why="bfinfra can't choose one",
                next=nearest("", (d.name for d in here)),
            )
        found = here[0]
    else:
        around = f"that {spec.host} reaches"
        found = the(lookup(reached, spec.datastore), "datastore", spec.datastore, "datastore", around)
    if state is None and found.free < size:
        raise Refusal(
            f"{found.name} has too little room",
            field="datastore",
            why=f"{bytes_short(found.free)} are free, the OVA takes at least {bytes_short(size)}",
            next="free some space, or choose another",
        )
    return found


def _folder(spec: Spec, inventory: Inventory, datacenter: str) -> str:
    return the(inventory.folder(spec.folder, datacenter), "VM folder", spec.folder, "folder").moid


def _adapters(spec: Spec, ova: Ova, detail: HostDetail, context: PlanContext) -> tuple[Adapter, ...]:
    """The adapters: the site's networks on the OVA's networks of the same name, the others on the remaining
    ones in order, and further ones after them.
    """
    names = [n.name for n in ova.networks]
    left = [n for n in names if n not in spec.networks]
    found = []
    for label in spec.networks:
        ovf = label if label in names else left.pop(0) if left else ""
        found.append(
            Adapter(
                at=f"networks.{label}",
                ovf=ovf,
                network=_network(label, spec, detail, context),
                name=spec.networks[label].network,
                mac=spec.networks[label].mac or "",
            )
        )
    return tuple(sorted(found, key=lambda a: names.index(a.ovf) if a.ovf else len(names)))


def surplus(ova: Ova, adapters: tuple[Adapter, ...]) -> frozenset[int]:
    """The positions of the OVA's adapters for which the site has no network."""
    used, first = {a.ovf for a in adapters}, _first(ova)
    return frozenset(
        i for i, network in enumerate(ova.hardware.adapters) if network not in used or first[network] != i
    )


def macs(ova: Ova, adapters: tuple[Adapter, ...]) -> dict[int, str]:
    """The MAC addresses that the site gives to the OVA's adapters, by their positions."""
    first = _first(ova)
    return {first[each.ovf]: each.mac for each in adapters if each.mac and each.ovf in first}


def _first(ova: Ova) -> dict[str, int]:
    """The position of the first adapter on each network of the OVA."""
    return {network: index for index, network in reversed(list(enumerate(ova.hardware.adapters)))}


def _network(label: str, spec: Spec, detail: HostDetail, context: PlanContext) -> str | Unknown:
    wanted, need = spec.networks[label].network, context.needs.get(f"networks.{label}.network")
    if (
        need is not None and need.spec is not None
    ):  # whether the host has it is not checked here: the host was read before the network was made
        return Unknown(need.key, "group") if need.state is None else str(need.state.group.moid)
    facts: BitfusionServerFacts = context.facts
    reached = [n for n in facts.inventory.networks if n.moid in detail.networks]
    at, around = f"networks.{label}.network", f"on {spec.host}"
    return the(lookup(reached, wanted), "network", wanted, at, around).moid
