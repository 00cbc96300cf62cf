"""The offer of a supervisor namespace to clusters, and the refusals for what it doesn't have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.supervisor.base.pools import ClusterSpec, InNamespace
from bfinfra.kinds.supervisor.base.upgrade import matches, numbers
from bfinfra.model.errors import Forbidden, Missing, Refusal
from bfinfra.model.names import storage_class
from bfinfra.model.records import dataclass
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

VM_OPERATOR = "vmoperator.vmware.com/v1alpha1"
RELEASES = "run.tanzu.vmware.com/v1alpha1"
QUOTA = re.compile(r"(.+)\.storageclass\.storage\.k8s\.io/.+")


@dataclass(frozen=True)
class Offer:
    """None: the supervisor doesn't report it. Then nothing is refused here."""

    vm_classes: frozenset[str] | None = None
    storage_classes: frozenset[str] | None = None
    versions: frozenset[str] | None = None
    unseen: str = ""
    """Why the releases aren't reported, in the supervisor's words."""


def read(cluster: ClusterClient, namespace: str) -> Offer:
    """Reads three or four small lists. Raises RemoteError."""
    return Offer(
        _asked(lambda: _classes(cluster, namespace)),
        _asked(lambda: _storage(cluster, namespace)),
        *_releases(cluster),
    )


def of_machines(cluster: ClusterClient, namespace: str) -> Offer:
    """Without the releases, which are for clusters. Raises RemoteError."""
    return Offer(_asked(lambda: _classes(cluster, namespace)), _asked(lambda: _storage(cluster, namespace)))


def of_new(supervisor: ClusterClient) -> Offer:
    """Return the offer of a namespace that doesn't exist yet: the classes and policies of its spec, and the
    supervisor's releases.
    """
    return Offer(frozenset(), frozenset(), *_releases(supervisor))


def check(spec: ClusterSpec, offer: Offer, promised: object) -> None:
    """Raises Refusal for what the namespace doesn't offer. `promised`: the namespace's spec, for what this
    run adds to it first.
    """
    check_classes(spec, offer, promised)
    if offer.versions and not any(matches(full, spec.version) for full in offer.versions):
        raise Refusal(
            f"the supervisor has no release {spec.version}",
            field="version",
            why=_there(offer.versions),
            next="choose one of these, or subscribe the content library that holds it",
        )


def check_classes(spec: InNamespace, offer: Offer, promised: object) -> None:
    """Raises Refusal for a VM class or a storage class that the namespace doesn't offer. `promised`: as in
    `check`.
    """
    policies = [storage_class(policy) for policy in getattr(promised, "storage", {})]
    for what, setting, named, offered, more in (
        ("VM class", "vm_classes", spec.vm_classes, offer.vm_classes, getattr(promised, "vm_classes", ())),
        ("storage class", "storage", spec.storage, offer.storage_classes, policies),
    ):
        known = {*(offered or ()), *more}
        for field, name in named.items() if known or offered is not None else ():
            if name not in known:
                raise Refusal(
                    f"the namespace {spec.namespace} offers no {what} {name}",
                    field=field,
                    why=f"it is not among the namespace's {setting}",
                    next=nearest(name, known) or f"add it to the namespace's {setting}",
                )


def _there(versions: Iterable[str]) -> str:
    """All versions, each once, without the build suffix, the newest last."""
    short = {numbers(v): v.partition("+")[0] for v in versions}
    return f"there are: {', '.join(short[each] for each in sorted(short))}"


def _asked(ask: Callable[[], Iterable[str]]) -> frozenset[str] | None:
    """The names in a list; None if the supervisor has no such list, or doesn't let us read it."""
    try:
        return frozenset(ask())
    except (Missing, Forbidden):
        return None


def _classes(cluster: ClusterClient, namespace: str) -> list[str]:
    """The names of VM classes. Newer supervisors have them in the namespace itself, and serve no bindings or
    leave them empty.
    """
    try:
        bindings = cluster.list(VM_OPERATOR, "VirtualMachineClassBinding", namespace)
    except Missing:
        bindings = []
    if bindings:
        return [(b.get("classRef") or {}).get("name") or b["metadata"]["name"] for b in bindings]
    classes = cluster.list(VM_OPERATOR, "VirtualMachineClass", namespace)
    return [c["metadata"]["name"] for c in classes if c["metadata"].get("namespace") == namespace]


def _storage(cluster: ClusterClient, namespace: str) -> list[str]:
    quotas = cluster.list("v1", "ResourceQuota", namespace)
    found = [
        m[1] for q in quotas for key in (q.get("spec") or {}).get("hard") or {} if (m := QUOTA.fullmatch(key))
    ]
    return found or [c["metadata"]["name"] for c in cluster.list("storage.k8s.io/v1", "StorageClass")]


def _releases(cluster: ClusterClient) -> tuple[frozenset[str] | None, str]:
    """The versions; else None, and why they can't be read."""
    try:
        return frozenset(map(_version, cluster.list(RELEASES, "TanzuKubernetesRelease"))), ""
    except (Missing, Forbidden) as error:
        return None, error.problems[0].why


def _version(release: Mapping[str, Any]) -> str:
    text: str = (release.get("spec") or {}).get("version") or release["metadata"]["name"]
    return ("" if text.startswith("v") else "v") + text.replace("---", "+")
