"""Conflicts between resources of a site that are each valid by themselves, and what a resource needs for
itself.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bfinfra.model.errors import Place, Problem
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key

BITS = {"IPv4": 32, "IPv6": 128}
ROOM = 3  # a network of two addresses (RFC 3021) has no address of its own


Opened = tuple[Any, int, Key, "Taken"]
"""The first value, its place in the site, the resource, and what it takes."""


class Spot(NamedTuple):
    """A dotted field of a resource."""

    key: Key
    field: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """`at`: where it is reported; `others`: the fields that it conflicts with. `stops`: False for a warning.

    `inside`: the place inside of a file that the field names, shown instead of the field's.
    """

    at: Spot
    what: str
    others: tuple[Spot, ...] = ()
    why: str = ""
    next: str = ""
    stops: bool = True
    inside: Place | None = None

    def located(self, place: Callable[[Key, str], Place | None]) -> Problem:
        """The problem at its place; `why` names the places of the others."""
        beside = ", ".join(f"{other.key} at {place(*other) or other.field}" for other in self.others)
        why = "; ".join(filter(None, (self.why, beside and f"see {beside}")))
        return Problem(
            f"{self.at.key}: {self.what}", self.inside or place(*self.at) or str(self.at.key), why, self.next
        )


class Taken(NamedTuple):
    """Values that only one resource may have: all of `scope` from `first` to `last`, as numbers or texts.

    `owner`: who has it, if several resources may name the same; `network`: the network where an address is
    used, "" if unknown; `apart`: only this network reaches it; `subnet`: first and last address of the
    network around it.
    """

    field: str
    what: str
    scope: Hashable
    first: Any
    last: Any
    owner: Hashable = None
    network: str = ""
    apart: bool = False
    subnet: tuple[int, int] | None = None


class Inner(NamedTuple):
    """A network inside of a cluster. `nodes`: whether the cluster's nodes are machines on the site's own
    networks.
    """

    field: str
    cidr: str
    nodes: bool = False


def thing(field: str, what: str, *scope: str) -> Taken:
    """One thing by its name in a scope, such as `Pod/train` in a namespace of a cluster."""
    return Taken(field, what, scope, what, what)


def address(
    field: str, text: str, *, count: int = 1, owner: Hashable = None, on: tuple[str, bool] = ("", False)
) -> Iterator[Taken]:
    """An address with or without its prefix, or `count` consecutive ones; () for a name or DHCP.

    `on`: its network, and whether only that network reaches it.
    """
    plain = text.partition("/")[0]
    if (found := _number(plain)) is not None:
        version, first = found
        what = plain if count == 1 else f"{plain} with the {count - 1} after it"
        span = _span(text)
        yield Taken(field, what, version, first, first + count - 1, owner, *on, span and span[1:])


def network(field: str, cidr: str) -> Iterator[Taken]:
    """Every address of a network."""
    if span := _span(cidr):
        yield Taken(field, cidr, *span)


def unfit(interface: str) -> str:
    """Return why an address with its prefix can't be a machine's, or ""."""
    span, own = _span(interface), _number(interface.partition("/")[0])
    if span is None or own is None or span[0] != "IPv4" or span[2] - span[1] < ROOM:
        return ""
    meaning = {span[1]: "the network itself", span[2]: "all machines in the network"}.get(own[1])
    return f"{interface} is no machine's address: it means {meaning}" if meaning else ""


def unreachable(gateway: str, interface: str, *, count: int = 1) -> str:
    """Return why a gateway can't serve an address with its prefix and the `count - 1` addresses after it, or
    "".
    """
    found, span, own = _number(gateway), _span(interface), _number(interface.partition("/")[0])
    if found is None or span is None or own is None:
        return ""
    if found[0] != span[0] or not span[1] <= found[1] <= span[2]:
        return f"{gateway} is outside of the network of {interface}, and can't be reached from there"
    return (
        f"{gateway} is one of the addresses that are assigned" if own[1] <= found[1] < own[1] + count else ""
    )


def twice(taken: Iterable[tuple[Key, Taken]]) -> Iterator[Conflict]:
    """Yield the values that two resources both take, reported at the later one."""
    scopes: dict[Hashable, list[Opened]] = {}
    for order, (key, each) in enumerate(taken):
        scopes.setdefault(each.scope, []).append((each.first, order, key, each))
    for found in scopes.values():
        yield from _overlaps(sorted(found))  # no two have the same place in the site


def covered(inner: Iterable[tuple[Key, Inner]], taken: Sequence[tuple[Key, Taken]]) -> Iterator[Conflict]:
    """Addresses of machines that are also inside of a cluster's own network: nothing in the cluster can reach
    them.
    """
    spans = [(key, each, span) for key, each in inner if (span := _span(each.cidr))]
    for key, each, (version, first, last) in spans:
        for other, held in taken:
            if held.scope != version:
                continue
            if held.first <= last and first <= held.last:
                yield _covered(key, each, other, held)
            elif held.subnet and held.subnet[0] <= last and first <= held.subnet[1]:
                yield Conflict(
                    Spot(key, each.field),
                    f"{each.cidr} overlaps the network of {held.what}",
                    (Spot(other, held.field),),
                    why="addresses in it can't be reached from the cluster",
                    stops=False,
                )


def _covered(key: Key, each: Inner, other: Key, held: Taken) -> Conflict:
    return Conflict(
        Spot(key, each.field),
        f"{each.cidr} covers {held.what} of {other}",
        (Spot(other, held.field),),
        why="inside of the cluster these addresses are its own, so nothing there can reach that machine",
        next="choose a network that nothing else uses",
        stops=each.nodes or not held.apart,
    )


def _overlaps(found: list[Opened]) -> Iterator[Conflict]:
    """`found` is sorted by first value; each entry is compared with the earlier one that reaches farthest."""
    farthest = found[0]
    for entry in found[1:]:
        one, other = farthest[3], entry[3]
        if other.first <= one.last and (one.owner is None or one.owner != other.owner):
            yield _double(*sorted((farthest[1:], entry[1:])))
        if other.last >= one.last:
            farthest = entry


def _double(first: tuple[int, Key, Taken], second: tuple[int, Key, Taken]) -> Conflict:
    (_, before, one), (_, key, other) = first, second
    apart = one.network and other.network and one.network != other.network and (one.apart or other.apart)
    same = one.what == other.what
    why = (
        f"the networks {one.network} and {other.network} must never be connected"
        if apart
        else "each needs its own"
    )
    return Conflict(
        Spot(key, other.field),
        f"{other.what} is {before}'s already" if same else f"{other.what} meets {one.what} of {before}",
        (Spot(before, one.field),),
        why,
        "" if apart else "change one of the two",
        stops=not apart,
    )


@functools.lru_cache(maxsize=1024)
def _number(text: str) -> tuple[str, int] | None:
    for version, family in (("IPv4", socket.AF_INET), ("IPv6", socket.AF_INET6)):
        try:
            return version, int.from_bytes(socket.inet_pton(family, text))
        except (OSError, ValueError):
            continue
    return None


@functools.lru_cache(maxsize=1024)
def _span(cidr: str) -> tuple[str, int, int] | None:
    text, _, prefix = cidr.partition("/")
    found = _number(text) if prefix.isdecimal() else None
    if found is None or int(prefix) > BITS[found[0]]:
        return None
    hosts = (1 << (BITS[found[0]] - int(prefix))) - 1
    return found[0], found[1] & ~hosts, found[1] | hosts
