"""Checks for what would stop an apply of Bitfusion servers. The doctor reports damaged appliances, hosts that
take no uploads, datastores without space; the plan what servers can't have together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.backends import ova
from bfinfra.backends.vcenter.places import Cluster, Datastore, Inventory, only
from bfinfra.kinds import power
from bfinfra.kinds.server_checks import connected
from bfinfra.kinds.vcenter.base import datastores
from bfinfra.kinds.vcenter.base.datastores import Claim, store_of
from bfinfra.kinds.vcenter.base.machine import checks
from bfinfra.kinds.vcenter.base.machine.checks import Asked, due, to_start
from bfinfra.kinds.vcenter.bitfusion_server.appliance import Packages
from bfinfra.kinds.vcenter.bitfusion_server.gpus import cpus_for, memory_for, of_cards, of_profile
from bfinfra.kinds.vcenter.bitfusion_server.spec import Ova, Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import BitfusionServerFacts, State
from bfinfra.model.awaited import Absent
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Problem, Refusal
from bfinfra.model.finding import Finding, bad, good
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key
from bfinfra.model.trust import Server, Trust
from bfinfra.model.units import bytes_short

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext

LOSING = 2
"""A group of this many servers loses its majority when one fails. (Bitfusion 4.0 guide: 1, 3 or more
servers.)
"""
MINIMUM = (2, 5)
"""From the prerequisites of the device plug-in: Bitfusion 2.5+."""


def conflicts(wanted: Specs, states: Specs, facts: BitfusionServerFacts) -> Iterator[Conflict]:
    """Servers that their host or their datastore can't take together; servers too old for the site's device
    plug-in.
    """
    yield from datastores.conflicts(_claims(wanted, states, facts), freed=not states.keys() <= wanted.keys())
    yield from power.conflicts(to_start(wanted, states, Spec), facts.inventory, states)
    yield from checks.conflicts(facts.seen, facts.inventory, wanted, states)
    yield from _too_old(wanted, facts.ovas)


def asked(wanted: Specs, states: Specs, inventory: Inventory) -> Iterator[Asked]:
    """What servers to make or to change ask of their hosts, as far as these are known."""
    for key, spec in wanted.items():
        if not isinstance(spec, Spec):
            continue
        state, cpus = states.get(key), spec.cpus or cpus_for(spec.gpus)
        reserved = True if spec.gpus else None
        if not due(spec, state, cpus=cpus, memory=spec.memory or 0, reserved=reserved):
            continue
        host = only(inventory.host(spec.host))
        cluster = inventory.by_moid.get(host.cluster) if host else None
        if host is None or not isinstance(cluster, Cluster):
            continue
        machine = state.whole if isinstance(state, State) else None
        size = _memory(spec, wanted.get(Key("gpu_host", spec.host)))
        yield Asked(
            key=key,
            cluster=cluster,
            host=host,
            machine=machine,
            cpus=cpus,
            memory=size or (machine.memory if machine else 0),
            reserved=bool(reserved),
            profiles=(spec.vgpu_profile,) * spec.gpus if spec.vgpu_profile else (),
            cards="gpus",
        )


def _memory(spec: Spec, host: object) -> int:
    """The memory that a server gets, in bytes; 0 while that of its cards is not known."""
    profile = spec.vgpu_profile
    each = spec.gpu_memory or (of_profile(profile) if profile else of_cards(getattr(host, "passthrough", ())))
    return spec.memory or (memory_for(spec.gpus * each) if each else 0)


def check_group(name: str, spec: Spec, context: PlanContext) -> None:
    """Raises Refusal for servers that can't form one Bitfusion cluster: a first one, and those that join it.
    A server without `first` is a group of its own, or is checked with the servers that name it.
    """
    if spec.first is None:
        return
    leader = context.needs["first"].spec
    if spec.first == name or (leader is not None and leader.first is not None):
        raise Refusal(
            f"{spec.first} is not the first server of a group",
            field="first",
            why="its own field `first` names another server"
            if spec.first != name
            else "a server can't come after itself",
            next="name the one server of the group that has no first",
        )
    others = [
        peer
        for peer, (other, _) in context.siblings.items()
        if other is not None and peer != spec.first and other.first == spec.first
    ]
    if 1 + 1 + len(others) == LOSING:
        raise Refusal(
            f"{spec.first} and {name} are a group of {LOSING} servers",
            field="first",
            why="when either fails the other has no majority, and serves no client",
            next="add a third one, which may have gpus: 0, or leave first out and have two groups of one",
        )


def _too_old(wanted: Specs, ovas: Mapping[str, ova.Ova | Problem]) -> Iterator[Conflict]:
    """Servers that the device plug-in's token leads to, of a release that it doesn't work with, as far as
    their appliance's version is known.
    """
    for key, spec in wanted.items():
        if key.kind != "bitfusion_device_plugin" or not spec.token_secret:
            continue
        secret = wanted.get(Key("token_secret", spec.token_secret))
        token = wanted.get(Key("bitfusion_token", secret.token)) if secret else None
        for name in token.servers if token else ():
            server = wanted.get(Key("bitfusion_server", name))
            package = ovas.get(server.ova.text) if server and server.ova else None
            if isinstance(package, ova.Ova) and (version := _older(package)):
                yield Conflict(
                    Spot(key, "token_secret"),
                    f"its token leads to a server of Bitfusion {version}",
                    (Spot(Key("bitfusion_server", name), "ova"),),
                    why=f"the device plug-in needs {'.'.join(map(str, MINIMUM))} or later",
                    next="deploy a newer appliance",
                )


def _older(package: ova.Ova) -> str:
    """The version, if the appliance is a Bitfusion older than the minimum, else ""."""
    product = package.product
    found = re.match(r"(\d+)\.(\d+)", product.full_version) if "bitfusion" in product.name.lower() else None
    return product.full_version if found and (int(found[1]), int(found[2])) < MINIMUM else ""


def _claims(wanted: Specs, states: Specs, facts: BitfusionServerFacts) -> Iterator[Claim]:
    """The disks of servers to create, as far as their OVA is readable, and disks to grow."""
    for key, spec in wanted.items():
        if not isinstance(spec, Spec):
            continue
        state = states.get(key)
        if isinstance(state, State) and not state.importing:
            yield from _grown(key, spec, state, facts.inventory)
        elif (store := _chosen(spec, states.get(Key("gpu_host", spec.host)), facts.inventory)) is not None:
            yield from _made(key, spec, facts.ovas.get(spec.ova.text), store, started=state is not None)


def _grown(key: Key, spec: Spec, state: State, inventory: Inventory) -> Iterator[Claim]:
    first = next(iter(state.machine.disks), None)
    if (
        first
        and spec.disk
        and spec.disk > first.capacity
        and (store := store_of(first, state.machine, inventory))
    ):
        yield Claim(Spot(key, "disk"), store, spec.disk, spec.disk - first.capacity, first.thin is not False)


def _made(key: Key, spec: Spec, package: object, store: Datastore, *, started: bool) -> Iterator[Claim]:
    """A half-imported server counts in full: it is deleted and imported anew."""
    own = [disk.capacity for disk in package.disks] if isinstance(package, ova.Ova) else []
    for index, size in enumerate([spec.disk or 0, *own[1:]] if spec.disk else own):
        at = Spot(key, "disk" if spec.disk and not index else "datastore" if spec.datastore else "ova")
        yield Claim(at, store, size, 0 if started else size, spec.disk_provisioning == "thin")


def _chosen(spec: Spec, host: object, inventory: Inventory) -> Datastore | None:
    """The datastore that the site names, or the only one of the host; None if neither is known."""
    if spec.datastore:
        return only(inventory.datastore(spec.datastore))
    detail = getattr(host, "detail", None)
    reached = (
        [each for each in inventory.datastores if each.moid in detail.datastores and each.accessible]
        if detail
        else []
    )
    return reached[0] if len(reached) == 1 else None


def appliances(context: CheckContext) -> Packages:
    """The site's OVAs. A run of the doctor reads each one once."""
    return Packages(context.transport)


def packages(context: CheckContext) -> Iterator[Finding]:
    """A finding per OVA: whether it is whole, by every digest that it or the site has."""
    known = context.once(appliances)
    for each in dict.fromkeys(spec.ova for spec in context.of("bitfusion_server").values()):
        found = known.look(each)
        if isinstance(found, Absent):
            continue  # `local.references` reports it
        if each.file and not isinstance(found, Problem):
            found = known.damage(each) or found
        if isinstance(found, Problem):
            yield bad(each.text, found.what, found.why, found.next)
        elif each.file:
            sums = f"{'its SHA-256 and ' if each.sha256 else ''}{len(found.manifest)} digests of its manifest"
            yield good(each.text, f"is whole ({bytes_short(found.size)}, {sums})")
        else:
            yield good(
                each.text, f"can be read ({bytes_short(found.size)}); an apply verifies all of it first"
            )


def uploads(context: CheckContext) -> Iterator[Finding]:
    """A finding per host that gets an appliance: whether it takes uploads."""
    for key, spec in context.of("bitfusion_server").items():
        yield connected(context, Server(f"{key} (takes uploads)", spec.host, 443, Trust()))


def space(context: CheckContext) -> Iterator[Finding]:
    """A finding per datastore: whether it has space for the appliances."""
    inventory = context.entered().inventory.read()
    hosts = {host.name: host.moid for host in inventory.hosts}
    for key, spec in context.of("bitfusion_server").items():
        need, own = _size(context, spec.ova), hosts.get(spec.host, "")
        reached = [
            d
            for d in inventory.datastores
            if own in d.hosts and (not spec.datastore or d.is_called(spec.datastore))
        ]
        if not reached:
            yield bad(
                key,
                f"{spec.host} reaches no datastore {spec.datastore or ''}".rstrip(),
                next="correct datastore, or mount it on the host",
            )
        for store in reached:
            room = f"{store.name} has {bytes_short(store.free)} free, the OVA takes {bytes_short(need)}"
            if not store.accessible:
                yield bad(key, f"{store.name} is not accessible", next="check its state in vCenter")
            elif store.free < need and not any(
                machine.name == key.name for machine in context.entered().machines.survey("bfinfra.mark")
            ):
                yield bad(key, room, next="free some space, or choose another datastore")
            else:
                yield good(key, room)


def _size(context: CheckContext, of: Ova) -> int:
    """The bytes that a server's disks take at least; 0 if the OVA can't be read, which
    `packages` reports.
    """
    found = context.once(appliances).look(of)
    return 0 if isinstance(found, Problem) else found.least


CHECKS = {"local.packages": packages, "servers.connections": uploads, "vcenter.space": space}
