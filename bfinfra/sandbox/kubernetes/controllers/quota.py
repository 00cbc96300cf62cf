"""Resource quotas: refuses creates beyond them, and keeps what is used in their status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.controllers.loop import Item
from bfinfra.sandbox.kubernetes.errors import forbidden
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of
from bfinfra.sandbox.kubernetes.quantity import amount, written
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.target import Options, Target

QUOTAS: Key = ("", "resourcequotas")
PLAIN = (
    "pods",
    "secrets",
    "configmaps",
    "services",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
)
ENDED = ("Succeeded", "Failed")


class Quotas:
    """Admission and status."""

    kinds = (QUOTAS,)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        cluster.validations.append(self._admit)

    def touched(self, change: Change) -> Iterable[Item]:
        """The quotas of the namespace in which something came, went or ended."""
        if namespace_of(change.after) and change.key != QUOTAS:
            for quota in self._cluster.store.all(QUOTAS, namespace_of(change.after)):
                yield (QUOTAS, namespace_of(quota), name_of(quota))

    def look(self, item: Item, thing: Object | None) -> None:
        """Write what is used."""
        if thing is None:
            return
        hard = dig(thing, "spec", "hard", default={})
        used = self._used(item[1], hard)
        status = {"hard": hard, "used": {key: written(used[key], hard[key]) for key in hard}}
        if thing.get("status") != status:
            self._cluster.set_status(thing, status)

    def _used(self, namespace: str, hard: Mapping[str, str]) -> dict[str, Decimal]:
        used = dict.fromkeys(hard, Decimal(0))
        for key in self._cluster.store.held():
            for thing in self._cluster.store.all(key, namespace) if key != QUOTAS else ():
                for name, value in costs(key, thing).items():
                    if name in used:
                        used[name] += value
        return used

    def _admit(self, target: Target, before: Object | None, after: Object, _: Options) -> None:
        if before is None and target.namespace:
            for quota in self._cluster.store.all(QUOTAS, target.namespace):
                self._check(target, quota, after)

    def _check(self, target: Target, quota: Object, after: Object) -> None:
        resource, hard = target.resource, dig(quota, "spec", "hard", default={})
        wanted = {name: value for name, value in costs(resource.key, after).items() if name in hard}
        if resource.kind == "Pod":
            missing = sorted(
                name
                for name in hard
                if name.startswith(("limits.", "requests.")) and name not in wanted and _computes(name)
            )
            if missing:
                why = f"failed quota: {name_of(quota)}: must specify {','.join(missing)}"
                raise forbidden(resource.plural, resource.group, name_of(after), why)
        used = self._used(target.namespace, hard)
        over = sorted(
            name for name, value in wanted.items() if value and used[name] + value > amount(hard[name])
        )
        if over:
            listed = ", ".join(
                f"{what}: {','.join(f'{name}={value(name)}' for name in over)}"
                for what, value in (
                    ("requested", lambda name: written(wanted[name], hard[name])),
                    ("used", lambda name: written(used[name], hard[name])),
                    ("limited", lambda name: hard[name]),
                )
            )
            raise forbidden(
                resource.plural, resource.group, name_of(after), f"exceeded quota: {name_of(quota)}, {listed}"
            )


def _computes(name: str) -> bool:
    return name.partition(".")[2] in ("cpu", "memory")


def costs(key: Key, thing: Object) -> dict[str, Decimal]:
    """Return how much of each possible quota one object uses."""
    group, plural = key
    found = {f"count/{plural}.{group}" if group else f"count/{plural}": Decimal(1)}
    if not group and plural in PLAIN:
        found[plural] = Decimal(1)
    if key == ("", "pods"):
        found = {} if dig(thing, "status", "phase") in ENDED else {**found, **_compute(thing)}
    if key == ("", "persistentvolumeclaims"):
        size = amount(dig(thing, "spec", "resources", "requests", "storage"))
        kind = f"{dig(thing, 'spec', 'storageClassName', default='')}.storageclass.storage.k8s.io"
        found |= {
            "requests.storage": size,
            f"{kind}/requests.storage": size,
            f"{kind}/persistentvolumeclaims": Decimal(1),
        }
    return found


def _compute(pod: Object) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for container in dig(pod, "spec", "containers", default=[]):
        for kind in ("requests", "limits"):
            for name, value in (dig(container, "resources", kind) or {}).items():
                found[f"{kind}.{name}"] = found.get(f"{kind}.{name}", Decimal(0)) + amount(value)
    return {
        **found,
        **{name: found[f"requests.{name}"] for name in ("cpu", "memory") if f"requests.{name}" in found},
    }
