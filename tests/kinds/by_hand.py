"""What somebody sets by hand on the object of a site, in fields and properties that the site doesn't say.

A kind's own are in tests/kinds/<kind>/by_hand.py, as BY_HAND.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, refs
from bfinfra.sandbox import Running

HEAD: Mapping[str, Any] = {
    "site": "example",
    "vcenter": {
        "server": "vc.small.test",
        "username": "admin@small.test",
        "password": {"env": "VCENTER_PASSWORD"},
        "trust": {"ca_file": "ca.pem"},
    },
}
MARK = re.compile(r"\n?bfinfra:1 site=[^\"\n]*")
NOTE = "bfinfra.mark"
COUNTED = re.compile(r"([vV]ersion|[mM]odified\w*|ConfigId|[tT]ime|revision)$")


@dataclass(frozen=True, kw_only=True)
class ByHand:
    """`said`: the fewest fields of the resource, named `object`. `hand` sets all others on its object, and a
    description of its own; `unmark` takes the mark off it. `changed`: what the site says next. `shown`: the
    changes that the plan has to show then, and no others; `moved`: the paths of the world that may be others
    afterwards. `beside`: what else is in the site.
    """

    said: Mapping[str, Any]
    hand: Callable[[VCenter], None]
    unmark: Callable[[VCenter], None] | None
    changed: Mapping[str, Any]
    shown: frozenset[str]
    moved: str
    object: str = "ours"
    beside: Mapping[str, Any] = field(default_factory=dict)

    def site(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The site with these fields of the resource."""
        return {**HEAD, **self.beside, kind: {self.object: dict(fields)}}


def of_kind(kind: str) -> tuple[ByHand, ...]:
    """What is set by hand for a kind, one after another; () if its folder doesn't say."""
    there = (Path(__file__).parent / kind / "by_hand.py").exists()
    found: tuple[ByHand, ...] = importlib.import_module(f"kinds.{kind}.by_hand").BY_HAND if there else ()
    return found


@contextlib.contextmanager
def administrator(path: Path, sandbox: Running) -> Iterator[VCenter]:
    """vCenter, for an administrator who works by hand."""
    transport = Transport(route=sandbox.lookup)
    settings = bfinfra.load(path, sandbox=sandbox).vcenter
    assert settings is not None
    vcenter = VCenter(settings, transport)
    try:
        yield vcenter
    finally:
        vcenter.close()
        transport.close()


def done(vcenter: VCenter, type_: type[Any], moid: str, method: str, *args: object) -> None:
    """A task on an object, to its end."""
    vcenter.tasks.run(lambda content: getattr(refs.refer(content, type_, moid), method)(*args), method)


def leaves(world: object, path: str = "") -> dict[str, str]:
    """Every value of a world by its path, without bfinfra's marks, counters and times."""
    if isinstance(world, dict):
        return {
            key: value
            for name, each in world.items()
            if not COUNTED.search(name)
            for key, value in leaves(each, f"{path}/{name}").items()
        }
    if isinstance(world, list):
        theirs = [each for each in world if not (isinstance(each, dict) and each.get("key") == NOTE)]
        return {
            key: value
            for at, each in enumerate(theirs)
            for key, value in leaves(each, f"{path}/{at}").items()
        }
    return {path: MARK.sub("", str(world))}


def moved(before: object, now: object) -> dict[str, tuple[str | None, str | None]]:
    """The paths at which two worlds differ, with both values."""
    here, there = leaves(before), leaves(now)
    return {
        path: (here.get(path), there.get(path))
        for path in sorted({*here, *there})
        if here.get(path) != there.get(path)
    }
