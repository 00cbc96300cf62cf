"""Which watchers are alive: those whose Leases change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from bfinfra.model.records import dataclass
from bfinfra.operator.lease import LASTS

LABELS = {"app.kubernetes.io/name": "bfinfra", "app.kubernetes.io/component": "watcher"}
SELECTOR = ",".join(f"{name}={value}" for name, value in LABELS.items())
Object = Mapping[str, Mapping[str, object]]


class Renewed(NamedTuple):
    """What a Lease says, and since when, by this process's clock."""

    holder: str
    at: str
    since: float


@dataclass
class Replicas:
    """Clocks of machines are never compared: a replica is gone if this process saw its Lease unchanged for
    `lasts` seconds, or its Lease is not there.
    """

    lasts: float = LASTS
    clock: Callable[[], float] = time.monotonic
    known: dict[tuple[str, str], Renewed] = field(default_factory=dict)

    def take(self, leases: Iterable[Object]) -> None:
        """The Leases of all watchers as they are now."""
        now, there = self.clock(), {}
        for each in leases:
            meta, spec = each["metadata"], each.get("spec") or {}
            place = str(meta.get("namespace", "")), str(meta["name"])
            holder, at = (str(spec.get(name) or "") for name in ("holderIdentity", "renewTime"))
            before = self.known.get(place)
            same = before is not None and (before.holder, before.at) == (holder, at)
            there[place] = before if before and same else Renewed(holder, at, now)
        self.known = there

    def alive(self, namespace: str = "") -> frozenset[tuple[str, str]]:
        """The namespace and name of each replica that lives; `namespace` "": of all."""
        now = self.clock()
        return frozenset(
            (space, each.holder)
            for (space, _), each in self.known.items()
            if each.holder and now - each.since < self.lasts and namespace in ("", space)
        )

    def silent(self, namespace: str, replica: str) -> float | None:
        """For how many seconds its Lease has not changed; None if it is not known."""
        found = (
            each for (space, _), each in self.known.items() if (space, each.holder) == (namespace, replica)
        )
        return next((self.clock() - each.since for each in found), None)
