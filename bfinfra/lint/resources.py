"""Checks of what containers request: names by release, numbers, limits that equal requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from bfinfra.lint.pods import PREFIX, Container, Pod, text
from bfinfra.model.device_plugin import ALLOCATED, COUNTS, MEMORY, PERCENT, RELEASES, Release
from bfinfra.model.remark import Remark, error, refused, warning
from bfinfra.model.suggest import nearest
from bfinfra.model.yaml import Entry

QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([munkMGTPE]|[KMGTPE]i|e\d+)?")
FACTORS = (
    {"": Decimal(1), "m": Decimal(10) ** -3, "u": Decimal(10) ** -6, "n": Decimal(10) ** -9}
    | {
        f"{letter}{i}": Decimal(1024 if i else 1000) ** power
        for power, letter in enumerate("KMGTPE", 1)
        for i in ("", "i")
    }
    | {"k": Decimal(1000)}
)
MB = 1_000_000  # bytes, as the webhook counts


def rules(pod: Pod, release: Release, total: int | None) -> Iterator[Remark]:
    """The remarks of all rules, container by container."""
    for container in (*pod.containers, *pod.init_containers):
        yield from _names(container, release)
        yield from _pairs(container, changed=pod.kind == "Pod" and pod.switch in release.switch)
        yield from _numbers(container, release, total)


def number(entry: Entry | None) -> Decimal | None:
    """A quantity, or None if it isn't one."""
    found = QUANTITY.fullmatch(text(entry.node)) if entry else None
    if not found:
        return None
    unit = found[2] or ""
    return Decimal(found[1]) * (Decimal(10) ** int(unit[1:3]) if unit[:1] == "e" else FACTORS[unit])


def _names(container: Container, release: Release) -> Iterator[Remark]:
    for name, entry in container.asks.items():
        if name == ALLOCATED:
            yield error(
                f"the webhook itself requests {name} for the pod",
                entry.at,
                "a pod that requests it takes a share, and starts no `bitfusion run`",
                f"request {release.count}",
            )
        elif name not in release.asked:
            others = [each for each in RELEASES.values() if name in each.asked]
            where = f"it belongs to release {', '.join(each.version for each in others)}" if others else ""
            instead = release.count if others and name in {each.count for each in others} else ""
            yield refused(
                f"release {release.version} doesn't know {name}",
                entry.at,
                where,
                f"write {instead}"
                if instead
                else nearest(name, release.asked) or f"it knows {', '.join(release.asked)}",
            )


def _pairs(container: Container, *, changed: bool) -> Iterator[Remark]:
    """`changed`: the webhook rewrites both before the API server checks them. It never sees the templates of
    Deployments and Jobs, which are checked too.
    """
    limits, requests = container.resources("limits"), container.resources("requests")
    say, saved = (
        (warning, "; here the webhook, which counts the request, makes both alike")
        if changed
        else (refused, "")
    )
    for name, entry in container.asks.items():
        if name not in limits:
            yield say(
                f"{name} has no limit",
                entry.at,
                f"for such resources the API server requires the limit, and uses it as the request{saved}",
                "write it under limits",
            )
        elif name in requests and number(limits[name]) != number(requests[name]):
            yield say(
                f"request and limit of {name} differ",
                entry.at,
                f"the API server refuses that{saved}",
                "write it under limits only",
            )


def _numbers(container: Container, release: Release, total: int | None) -> Iterator[Remark]:
    asks = container.asks
    if not any(name in release.asked for name in asks):
        return
    if not COUNTS & asks.keys():
        first = next(entry for name, entry in asks.items() if name in release.asked)
        yield refused(
            f"the container {container.name} requests a share, and no GPU",
            first.at,
            "the webhook refuses that",
            f"add {release.count}: 1",
        )
    yield from _whole(asks, release.count, 1, 0)
    yield from _whole(asks, PERCENT, 1, 100)
    if MEMORY in asks and MEMORY in release.parts:
        yield from _megabytes(asks[MEMORY]) if release.counts_megabytes else _memory(asks, total)


def _whole(asks: Mapping[str, Entry], name: str, least: int, most: int) -> Iterator[Remark]:
    if name not in asks:
        return
    value = number(asks[name])
    if value is None or value != int(value) or value < least or (most and value > most):
        upto = f"from {least} to {most}" if most else f"from {least} on"
        yield refused(
            f"{name} is {text(asks[name].node) or 'empty'}",
            asks[name].place,
            next=f"write a whole number {upto}",
        )


def _megabytes(entry: Entry) -> Iterator[Remark]:
    """Release 0.1 passes the quantity's plain number to -m: 8000M would be eight billion megabytes."""
    value = number(entry)
    if value is None or value != int(value) or value < 1:
        yield refused(
            f"{MEMORY} is {text(entry.node) or 'empty'}",
            entry.place,
            next=f"write megabytes as a bare number, such as {MEMORY}: 8000",
        )
    elif not text(entry.node).isdigit():
        yield error(
            f"{MEMORY} is {text(entry.node)}, which release 0.1 reads as {int(value)} megabytes",
            entry.place,
            "it passes the plain number to `bitfusion run -m`",
            f"write {max(int(value) // MB, 1)}",
        )


def _memory(asks: Mapping[str, Entry], total: int | None) -> Iterator[Remark]:
    entry = asks[MEMORY]
    bytes_ = number(entry)
    if bytes_ is None or bytes_ < MB:
        yield refused(
            f"{MEMORY} is {text(entry.node) or 'empty'}",
            entry.place,
            "the webhook counts in megabytes, rounded down",
            f"write a size, such as {PREFIX}gpu-memory: 8000M",
        )
    elif total and bytes_ // MB >= total:
        yield refused(
            f"{MEMORY} is {bytes_ // MB} MB",
            entry.place,
            f"the plug-in's total_gpu_memory is {total} MB, and it has to be less",
            "request less, or the whole GPU",
        )
    elif total == 0:
        yield refused(
            f"{MEMORY} works only where the plug-in's total_gpu_memory is set",
            entry.at,
            "here it is 0, and the webhook refuses such pods",
            "set it, or request gpu-percent",
        )
    elif total is None:
        yield warning(
            f"{MEMORY} works only where the plug-in's total_gpu_memory is set",
            entry.at,
            "by default it is 0, and the webhook refuses such pods",
            "give it with --total-gpu-memory MB, or request gpu-percent",
        )
    if PERCENT in asks:
        yield warning(f"{PERCENT} has no effect beside {MEMORY}", asks[PERCENT].at, next="keep one of them")
