"""Hosts that the site names: their clocks, whether they are alike, and how they share their GPUs. (RDG for
PVRDMA, "Host Configuration".)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from bfinfra.backends.vcenter.esxi_settings import HostSetup
from bfinfra.doctor.blocked import Blocked
from bfinfra.doctor.ground import CheckContext
from bfinfra.model.errors import Denied
from bfinfra.model.finding import Finding, bad, good, warning

DIRECT = "sharedDirect"
FEW = 5  # VIBs that are named
FIELDS = ("model", "firmware", "build", "cards")


def clocks(ground: CheckContext) -> Iterator[Finding]:
    """Hosts keep their time by NTP."""
    switches = {name for spec in ground.of("distributed_switch").values() for name in spec.hosts}
    placed = {spec.host for spec in ground.of("virtual_machine").values() if spec.host}
    for name, host in sorted(
        _setups(ground, {key.name for key in ground.of("gpu_host")} | switches | placed).items()
    ):
        about = f"host {name}"
        if not host.ntp:
            yield warning(
                about,
                "no time servers are set",
                "clocks drift apart, and tokens and certificates with them",
                "set NTP servers under Configure, Time Configuration",
            )
        elif not host.ntp_runs:
            yield warning(
                about,
                "its NTP service does not run",
                f"servers: {', '.join(host.ntp)}",
                "start ntpd, and let it start with the host",
            )
        else:
            yield good(about, f"keeps its time by {', '.join(host.ntp)}")


def alike(ground: CheckContext) -> Iterator[Finding]:
    """Hosts of one distributed switch are the same machines, of one build, with the same cards in the same
    places.
    """
    for key, spec in ground.of("distributed_switch").items():
        found = _setups(ground, spec.hosts)
        if len(found) < 2:
            continue
        other = [text for field in FIELDS for text in _others(found, field)]
        if other:
            yield warning(
                key,
                "its hosts are not alike",
                "; ".join(other),
                "the guide wants the same hardware, cards in the same places, and the same software on all",
            )
        else:
            yield good(
                key,
                (
                    f"its {len(found)} hosts are alike: {next(iter(found.values())).model}, build "
                    f"{next(iter(found.values())).build}"
                ),
            )


def software(ground: CheckContext) -> Iterator[Finding]:
    """Hosts of one distributed switch have the same VIBs."""
    for key, spec in ground.of("distributed_switch").items():
        found = _packages(ground, spec.hosts)
        if len(found) < 2:
            continue
        most = Counter(found.values()).most_common(1)[0][0]
        other = [f"{name}: {_departs(most, each)}" for name, each in sorted(found.items()) if each != most]
        if other:
            yield warning(
                key,
                "its hosts have other VIBs",
                "; ".join(other),
                "bring them to one image, drivers and firmware of the network cards first",
            )
        else:
            yield good(key, f"its {len(found)} hosts have the same {len(most)} VIBs")


def _packages(ground: CheckContext, names: Iterable[str]) -> dict[str, frozenset[str]]:
    vcenter, wanted = ground.entered(), set(names)
    known = {host.name: host.moid for host in vcenter.inventory.read().hosts if host.name in wanted}
    try:
        found = vcenter.host_settings.packages(known.values())
    except Denied:
        raise Blocked(
            "hosts",
            "to see a host's VIBs takes the privilege Host.Config.Image, which nothing else here needs",
        ) from None
    return {name: found[moid] for name, moid in known.items() if moid in found}


def _departs(most: frozenset[str], each: frozenset[str]) -> str:
    """In which VIBs one departs from most; the first few."""
    lacks, more = sorted(most - each), sorted(each - most)
    said = [
        f"lacks {', '.join(lacks[:FEW])}" if lacks else "",
        f"has {', '.join(more[:FEW])} besides" if more else "",
    ]
    left = max(0, len(lacks) - FEW) + max(0, len(more) - FEW)
    return " and ".join(filter(None, said)) + (f" ({left} more)" if left else "")


def graphics(ground: CheckContext) -> Iterator[Finding]:
    """Hosts of machines with vGPUs share their cards directly."""
    wanted = {spec.host for spec in ground.of("virtual_machine").values() if spec.vgpus and spec.host}
    for name, host in sorted(_setups(ground, wanted).items()):
        if host.graphics == DIRECT:
            yield good(f"host {name}", "its graphics type is Shared Direct")
        else:
            yield bad(
                f"host {name}",
                f"its graphics type is {host.graphics or 'not told'}",
                "a machine with a vGPU does not start there",
                "set Shared Direct under Configure, Graphics, and restart the host or its X.Org service",
            )


def _setups(ground: CheckContext, names: Iterable[str]) -> dict[str, HostSetup]:
    """Those that vCenter knows: that one is missing, others tell."""
    wanted = set(names)
    if not wanted:
        return {}
    vcenter = ground.entered()
    known = {host.name: host.moid for host in vcenter.inventory.read().hosts if host.name in wanted}
    found = vcenter.host_settings.setups(known.values())
    return {name: found[moid] for name, moid in known.items() if moid in found}


def _others(found: dict[str, HostSetup], field: str) -> Iterator[str]:
    """Who differs from most of them, and in what."""
    most = Counter(getattr(each, field) for each in found.values()).most_common(1)[0][0]
    for name, each in sorted(found.items()):
        value = getattr(each, field)
        if value != most and field == "cards":
            yield (
                f"{name} lacks {', '.join(sorted(most - value)) or 'nothing'} and has "
                f"{', '.join(sorted(value - most)) or 'nothing'} besides"
            )
        elif value != most:
            yield f"{name} has {field} {value}, most have {most}"
