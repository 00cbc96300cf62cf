"""Checks for what would stop an apply of Bitfusion servers: damaged appliances, hosts that take no uploads,
datastores without space.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.server_checks import connected
from bfinfra.kinds.vcenter.bitfusion_server.packages import Packages
from bfinfra.kinds.vcenter.bitfusion_server.spec import Ova
from bfinfra.model.awaited import Absent
from bfinfra.model.errors import Problem
from bfinfra.model.finding import Finding, bad, good
from bfinfra.model.trust import Server, Trust
from bfinfra.model.units import bytes_short

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext


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
