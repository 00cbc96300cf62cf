"""Checks whether the storage of the supervisor namespace can serve a workload's claims."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from bfinfra.kinds.cluster_locator import CLUSTERS, cluster_key
from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import Problem
from bfinfra.model.names import storage_class
from bfinfra.model.refs import Key
from bfinfra.model.suggest import nearest
from bfinfra.model.units import bytes_text

QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([kMGTP]|[KMGTP]i)?")
FACTORS = {"": 1, "k": 10**3} | {
    f"{letter}{i}": (1024 if i else 1000) ** power
    for power, letter in enumerate("KMGTP", 1)
    for i in ("", "i")
}
Limits = Mapping[str, int | None]


def problem(
    manifests: Iterable[Mapping[str, Any]], cluster: str, needs: Mapping[Key, ResolvedRef]
) -> Problem | None:
    """Return the first mistake in the claims, or None. `cluster`: the name in the workload's spec."""
    claims = [m.get("spec") or {} for m in manifests if m["kind"] == "PersistentVolumeClaim"]
    home = cluster_key(cluster, needs, CLUSTERS)
    space = _space(home, needs) if home and claims else None
    if home is None or space is None:
        return None
    name, limits, total = space
    asked = Counter[str]()
    for claim in claims:
        asked[claim.get("storageClassName") or ""] += _bytes(
            ((claim.get("resources") or {}).get("requests") or {}).get("storage")
        )
    settled = (
        home.kind == "supervisor_namespace" or needs[home].state is None
    )  # an existing cluster may have storage classes of its own
    if settled and (unknown := next((each for each in asked if each and each not in limits), "")):
        return Problem(
            f"a claim wants the storage class {unknown}",
            why=f"the namespace {name} has no such storage",
            next=nearest(unknown, limits) or f"add it to storage of supervisor_namespace/{name}",
        )
    for what, size, limit in [
        *((each, size, limits.get(each)) for each, size in asked.items()),
        ("", sum(asked.values()), total),
    ]:
        if limit is not None and size > limit:
            of, field = (f" of {what}", f"storage.{what}") if what else ("", "limits.storage")
            return Problem(
                f"its claims take {bytes_text(size)}{of}; the namespace {name} may use {bytes_text(limit)}",
                next=f"ask for less, or raise {field} of supervisor_namespace/{name}",
            )
    return None


def _space(home: Key, needs: Mapping[Key, ResolvedRef]) -> tuple[str, Limits, int | None] | None:
    """The supervisor namespace of the workload's storage: its name, its limits by storage class, and the
    total limit; None if there is none.
    """
    if home.kind in ("tanzu_cluster", "vks_cluster"):
        cluster = needs[home].spec or needs[home].state
        home = Key("supervisor_namespace", cluster.namespace)
    need = needs.get(home)
    if need is None or home.kind != "supervisor_namespace":
        return None
    storage, total = (
        (need.spec.storage, need.spec.limits.storage)
        if need.spec
        else (need.state.settings.storage, need.state.settings.total_storage)
    )
    return home.name, {storage_class(policy): limit for policy, limit in storage.items()}, total


def _bytes(quantity: object) -> int:
    """A quantity in bytes; 0 if it is none: the cluster reports that."""
    found = QUANTITY.fullmatch(str(quantity or ""))
    return int(Decimal(found[1]) * FACTORS[found[2] or ""]) if found else 0
