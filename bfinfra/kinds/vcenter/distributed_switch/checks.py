"""Checks of the hosts of a distributed switch: whether they are alike, and synchronise their time. (RDG for
PVRDMA, "Host Configuration".)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.vcenter.base.host_checks import setups, time_kept
from bfinfra.model.errors import Forbidden
from bfinfra.model.finding import Blocked, Finding, good, warning

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.esxi_settings import HostSetup
    from bfinfra.kinds.checks import CheckContext

FEW = 5  # how many VIBs a message names
FIELDS = ("model", "firmware", "build", "cards")


def alike(context: CheckContext) -> Iterator[Finding]:
    """A finding per switch: whether its hosts have the same model, build, and cards in the same slots."""
    for key, spec in context.of("distributed_switch").items():
        found = setups(context, spec.hosts)
        if len(found) < 2:
            continue
        other = [text for field in FIELDS for text in _others(found, field)]
        if other:
            yield warning(
                key,
                "its hosts are not alike",
                "; ".join(other),
                "the guide asks for the same hardware, with cards in the same slots, and the same software",
            )
        else:
            yield good(
                key,
                (
                    f"its {len(found)} hosts are alike: {next(iter(found.values())).model}, build "
                    f"{next(iter(found.values())).build}"
                ),
            )


def software(context: CheckContext) -> Iterator[Finding]:
    """A finding per switch: whether its hosts have the same VIBs."""
    for key, spec in context.of("distributed_switch").items():
        found = _packages(context, spec.hosts)
        if len(found) < 2:
            continue
        most = Counter(found.values()).most_common(1)[0][0]
        other = [f"{name}: {_departs(most, each)}" for name, each in sorted(found.items()) if each != most]
        if other:
            yield warning(
                key,
                "its hosts have different VIBs",
                "; ".join(other),
                "install one image on all, and update the drivers and firmware of the network cards first",
            )
        else:
            yield good(key, f"its {len(found)} hosts have the same {len(most)} VIBs")


def _packages(context: CheckContext, names: Iterable[str]) -> dict[str, frozenset[str]]:
    vcenter, wanted = context.entered(), set(names)
    known = {host.name: host.moid for host in vcenter.inventory.read().hosts if host.name in wanted}
    try:
        found = vcenter.host_settings.packages(known.values())
    except Forbidden:
        raise Blocked(
            "hosts",
            "to read a host's VIBs takes the privilege Host.Config.Image, which nothing else here needs",
        ) from None
    return {name: found[moid] for name, moid in known.items() if moid in found}


def _departs(most: frozenset[str], each: frozenset[str]) -> str:
    """The VIBs in which a host differs from most hosts; the first few."""
    lacks, more = sorted(most - each), sorted(each - most)
    parts = [
        f"lacks {', '.join(lacks[:FEW])}" if lacks else "",
        f"has {', '.join(more[:FEW])} in addition" if more else "",
    ]
    left = max(0, len(lacks) - FEW) + max(0, len(more) - FEW)
    return " and ".join(filter(None, parts)) + (f" ({left} more)" if left else "")


def _others(found: dict[str, HostSetup], field: str) -> Iterator[str]:
    """A line for each host that differs from most of them, with what differs."""
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


CHECKS = {
    "hosts.clocks": time_kept(
        "distributed_switch", lambda specs: (name for spec in specs.values() for name in spec.hosts)
    ),
    "hosts.alike": alike,
    "hosts.software": software,
}
