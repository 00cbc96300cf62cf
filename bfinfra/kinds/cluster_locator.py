"""Finds the clusters of Kubernetes objects, and reads from all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from pydantic import StringConstraints

from bfinfra.kinds import cluster_kinds
from bfinfra.model.context import ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal, RemoteError
from bfinfra.model.names import DNS_LABEL
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import Api

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient, Clusters

WHOLE = cluster_kinds()
NAMESPACE = "supervisor_namespace"
"""The one namespace of a supervisor that objects can be in."""
CLUSTERS = (*WHOLE, NAMESPACE)
NEXT = "wait until it is gone, or take away what holds it; then run this again"
DnsLabel = Annotated[str, StringConstraints(pattern=f"^{DNS_LABEL}$")]
T = TypeVar("T")


@dataclass(frozen=True)
class Cluster:
    """A cluster that can be read now. `namespace`: the only one to read, "" = all."""

    key: Key
    endpoint: Endpoint
    client: ClusterClient

    @property
    def namespace(self) -> str:
        """The supervisor namespace, the only one to read there; "" for other clusters, which are read as a
        whole.
        """
        return self.endpoint.namespace if self.key.kind == NAMESPACE else ""


@dataclass(frozen=True)
class Answers(Generic[T]):
    """The answer of each cluster; `unreadable`: see `Observation.unreadable`."""

    clusters: Mapping[Key, Cluster]
    found: Mapping[Key, T]
    unreadable: Mapping[str, RemoteError] = field(default_factory=dict)


class ClusterLocator:
    """The clusters of one kind. Remembers where a full survey found each resource, so that one that moves is
    found at its old place.
    """

    def __init__(self, clusters: Clusters, kinds: Iterable[str] = CLUSTERS) -> None:
        self._clusters = clusters
        self._kinds = tuple(kinds)
        self._found_in: dict[str, set[Key]] = {}

    def ask(
        self,
        wanted: Mapping[str, str | None],
        needs: Mapping[Key, ResolvedRef],
        read: Callable[[Cluster], T],
        *,
        include_unlisted: bool,
    ) -> Answers[T]:
        """Reads every cluster once. Without `include_unlisted`, reads only those that `wanted` needs (name →
        its cluster's name, None = to delete from where it was found).

        The resources of a cluster that doesn't answer are unreadable. Raises RemoteError if no cluster
        answers, or if only some names were asked for; the caller retries.
        """
        addresses = self._clusters_with_address(needs)
        placed = {
            name: cluster_key(written, addresses, self._kinds) if written else None
            for name, written in wanted.items()
        }
        anywhere = include_unlisted or any(
            written is None and name not in self._found_in for name, written in wanted.items()
        )
        where = {
            key: Cluster(key, at, self._clusters.at(at))
            for key, at in addresses.items()
            if anywhere or self._matters(key, placed)
        }
        found: dict[Key, T] = {}
        failed: dict[Key, RemoteError] = {}
        for key, cluster in where.items():
            try:
                found[key] = read(cluster)
            except RemoteError as error:
                failed[key] = error
        if failed and (not found or not include_unlisted):
            raise next(iter(failed.values()))
        unreadable = {f"(all in {key})": error for key, error in failed.items()}
        unreadable |= {name: failed[key] for name, key in placed.items() if key in failed}
        return Answers(where, found, unreadable)

    def saw(self, name: str, key: Key) -> None:
        """Remembers that this cluster has something of this name."""
        self._found_in.setdefault(name, set()).add(key)

    def _matters(self, key: Key, placed: Mapping[str, Key | None]) -> bool:
        return key in placed.values() or any(key in self._found_in.get(name, ()) for name in placed)

    def _clusters_with_address(self, needs: Mapping[Key, ResolvedRef]) -> dict[Key, Endpoint]:
        """Every cluster that exists and has an address."""
        found = (
            (key, getattr(need.state, "endpoint", None))
            for key, need in needs.items()
            if key.kind in self._kinds
        )
        return {key: endpoint for key, endpoint in found if isinstance(endpoint, Endpoint)}


def cluster_key(name: str, known: Container[Key], kinds: Iterable[str] = CLUSTERS) -> Key | None:
    """The key that a reference `name` means among those known, or None."""
    return next((key for kind in kinds if (key := Key(kind, name)) in known), None)


def is_named(name: str, key: Key, kinds: Container[str] = CLUSTERS) -> bool:
    """Return whether a reference `name` means this cluster, if it is one of these kinds."""
    return key.name == name and key.kind in kinds


def api_of(cluster: ResolvedRef, written: str, own: ResolvedRef | None) -> Api:
    """The place of privileges for a namespace: the namespace; the whole cluster if this site creates the
    namespace (`own`), as RBAC can't name one that doesn't exist yet. For a supervisor namespace, always
    itself.
    """
    if cluster.key.kind == NAMESPACE:
        return Api(cluster.key, cluster.key.name)
    made = own is not None and own.spec is not None and own.spec.cluster == cluster.key.name
    return Api(cluster.key, "" if made else written)


def real_name(written: str, cluster: str, need: ResolvedRef | None) -> str:
    """A namespace's name in the cluster. If `written` is a `namespace` of this site in that cluster, the name
    of that one.
    """
    spec = (need.spec or need.state) if need is not None else None
    return (spec.namespace or written) if spec is not None and spec.cluster == cluster else written


def going(what: str, held_by: str) -> Refusal:
    """The refusal to make a namespace, or something in it, while it is being deleted."""
    return Refusal(f"{what} is being deleted", why=held_by, next=NEXT, field="namespace")
