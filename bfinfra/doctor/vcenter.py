"""vCenter from inside: account, version, clock, rights, hosts, room, supervisors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bfinfra.doctor.ground import CheckContext
from bfinfra.doctor.local import sizes
from bfinfra.model.finding import Finding, bad, good, warning
from bfinfra.model.refs import Key
from bfinfra.model.suggest import nearest
from bfinfra.model.units import bytes_short

TESTED = ((7, 0), (9, 1))
SKEW = 60  # seconds


def login(ground: CheckContext) -> Iterator[Finding]:
    """The account gets into vCenter."""
    if ground.vcenter is None:
        return
    if ground.login is not None:
        raise ground.login
    yield good(f"vcenter {ground.vcenter.server}", "the account gets in")


def version(ground: CheckContext) -> Iterator[Finding]:
    """VCenter's version is one that bfinfra knows."""
    if ground.vcenter is None:
        return
    name, api = ground.entered().about()
    number = tuple(int(part) for part in re.findall(r"\d+", api)[:2])
    about = f"vcenter {ground.vcenter.server}"
    if number > TESTED[1]:
        yield warning(
            about,
            f"{name}, API {api}, is newer than bfinfra knows",
            "what changed there is not tried",
            "upgrade bfinfra, or read its changelog",
        )
    else:
        yield good(about, f"{name}, API {api}")


def clock(ground: CheckContext) -> Iterator[Finding]:
    """VCenter's clock agrees with ours."""
    if ground.vcenter is None:
        return
    server, before = ground.entered(), ground.now()
    theirs, after = server.now(), ground.now()
    off = (theirs - (before + (after - before) / 2)).total_seconds()
    yield skew(f"vcenter {server.server}", off)


def skew(about: str, off: float) -> Finding:
    """A server's clock, `off` seconds from ours."""
    if abs(off) <= SKEW:
        return good(about, f"its clock is {abs(off):.0f} s {'ahead' if off > 0 else 'behind'}")
    return warning(
        about,
        f"its clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} ours",
        "certificates and tokens may count as not yet or no longer valid",
        "set both clocks by NTP",
    )


def rights(ground: CheckContext) -> Iterator[Finding]:
    """The account has the privileges that the site needs on vCenter's objects."""
    if ground.vcenter is None or not ground.rights.entities:
        return
    lacking = ground.entered().grants.lacking(ground.rights.entities)
    for path, names in lacking.items():
        if names:
            yield bad(
                f"vcenter {path}",
                f"the account lacks {', '.join(names)}",
                next="an administrator gives them with the commands of: bfinfra privileges SITE --as govc",
            )
        else:
            yield bad(
                f"vcenter {path}",
                "there is nothing at this path",
                "the site names it",
                "correct the name in the site, or make it first",
            )
    if not lacking:
        yield good(
            f"vcenter {ground.vcenter.server}",
            f"the account has all {sum(map(len, ground.rights.entities.values()))} privileges",
        )


def hosts(ground: CheckContext) -> Iterator[Finding]:
    """The GPU hosts are there and connected."""
    if not (wanted := ground.of("gpu_host")):
        return
    known = {host.name: host for host in ground.entered().inventory.read().hosts}
    for key in wanted:
        host = known.get(key.name)
        if host is None:
            yield bad(key, "vCenter knows no such host", next=nearest(key.name, known))
        elif not host.connected:
            yield bad(key, "vCenter has no connection to it", next="look at the host's state in vCenter")
        elif host.maintenance:
            yield warning(
                key,
                "it is in maintenance mode",
                "no server can be started on it",
                "take it out when the work there is done",
            )
        else:
            yield good(key, "is connected")


def space(ground: CheckContext) -> Iterator[Finding]:
    """Datastores have room for the appliances."""
    if not (wanted := ground.of("bitfusion_server")):
        return
    inventory = ground.entered().inventory.read()
    hosts = {host.name: host.moid for host in inventory.hosts}
    for key, spec in wanted.items():
        need, own = sizes(spec), hosts.get(spec.host, "")
        reached = [d for d in inventory.datastores if own in d.hosts and spec.datastore in (None, d.name)]
        if not reached:
            yield bad(
                key,
                f"{spec.host} reaches no datastore {spec.datastore or ''}".rstrip(),
                next="correct datastore, or mount it on the host",
            )
        for store in reached:
            room = f"{store.name} has {bytes_short(store.free)} free, the OVA takes {bytes_short(need)}"
            if not store.accessible:
                yield bad(key, f"{store.name} is not accessible", next="look at its state in vCenter")
            elif store.free < need and not any(
                machine.name == key.name for machine in ground.entered().machines.survey("bfinfra.mark")
            ):
                yield bad(key, room, next="free some, or choose another datastore")
            else:
                yield good(key, room)


def supervisors(ground: CheckContext) -> Iterator[Finding]:
    """Workload management is enabled where the site wants namespaces."""
    for key, spec in ground.of("supervisor_namespace").items():
        found = ground.catalog.supervisors.get(spec.cluster)
        ours = ground.site.resources.get(Key("supervisor", spec.cluster))
        if found is None and ours is not None and ours.enable:
            yield good(key, f"this site enables the supervisor on {spec.cluster}")
        elif found is None:
            yield bad(
                key,
                f"no supervisor runs on the cluster {spec.cluster}",
                next=(
                    f"enable workload management there; {nearest(spec.cluster, ground.catalog.supervisors)}"
                ).rstrip("; "),
            )
        elif not found.running:
            yield bad(
                key,
                f"the supervisor on {spec.cluster} does not run",
                next="look at its messages under workload management in vCenter",
            )
        else:
            yield good(key, f"the supervisor on {spec.cluster} runs at {found.endpoint}")
