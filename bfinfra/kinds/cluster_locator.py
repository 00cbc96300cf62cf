"""Where Kubernetes objects live: the clusters among the needs, and one bulk read over all of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from pydantic import StringConstraints

from bfinfra.kinds import cluster_kinds
from bfinfra.model.context import ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import RemoteError
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
DnsLabel = Annotated[str, StringConstraints(pattern=f"^{DNS_LABEL}$")]
T = TypeVar("T")


@dataclass(frozen=True)
class Cluster:
    """A cluster that can be asked now. `namespace`: the only one that may be looked into, "" = all."""

    key: Key
    endpoint: Endpoint
    client: ClusterClient

    @property
    def namespace(self) -> str:
        """A supervisor namespace alone is looked into; other clusters are looked at as a whole."""
        return self.endpoint.namespace if self.key.kind == NAMESPACE else ""


@dataclass(frozen=True)
class Answers(Generic[T]):
    """What each cluster answered; `unreadable`: what `Observation.unreadable` takes."""

    clusters: Mapping[Key, Cluster]
    found: Mapping[Key, T]
    unreadable: Mapping[str, RemoteError] = field(default_factory=dict)


class ClusterLocator:
    """One kind's way to its clusters. Remembers where a full survey saw what, so that a resource that moves
    is found at its old place.
    """

    def __init__(self, clusters: Clusters, kinds: Iterable[str] = CLUSTERS) -> None:
        self._clusters = clusters
        self._kinds = tuple(kinds)
        self._seen: dict[str, set[Key]] = {}

    def ask(
        self,
        wanted: Mapping[str, str | None],
        needs: Mapping[Key, ResolvedRef],
        read: Callable[[Cluster], T],
        *,
        include_unlisted: bool,
    ) -> Answers[T]:
        """Ask every cluster once; without `include_unlisted` only those that matter to `wanted` (name → its
        cluster's name, None = it goes from where it was seen).

        A cluster that doesn't answer leaves what is wanted there unreadable; RemoteError where none answers
        or only few names were asked for: the caller tries that again.
        """
        standing = self._standing(needs)
        placed = {
            name: cluster_key(written, standing, self._kinds) if written else None
            for name, written in wanted.items()
        }
        anywhere = include_unlisted or any(
            written is None and name not in self._seen for name, written in wanted.items()
        )
        where = {
            key: Cluster(key, at, self._clusters.at(at))
            for key, at in standing.items()
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
        """Something under this name stands in this cluster."""
        self._seen.setdefault(name, set()).add(key)

    def _matters(self, key: Key, placed: Mapping[str, Key | None]) -> bool:
        return key in placed.values() or any(key in self._seen.get(name, ()) for name in placed)

    def _standing(self, needs: Mapping[Key, ResolvedRef]) -> dict[Key, Endpoint]:
        """Every cluster that stands and has an address; one that isn't up yet holds nothing."""
        found = (
            (key, getattr(need.state, "endpoint", None))
            for key, need in needs.items()
            if key.kind in self._kinds
        )
        return {key: endpoint for key, endpoint in found if isinstance(endpoint, Endpoint)}


def cluster_key(name: str, known: Container[Key], kinds: Iterable[str] = CLUSTERS) -> Key | None:
    """The key that a reference `name` means among those known, or None."""
    return next((key for kind in kinds if (key := Key(kind, name)) in known), None)


def api_of(cluster: ResolvedRef, written: str, own: ResolvedRef | None) -> Api:
    """Where rights are needed for a namespace: itself; the whole cluster where this site makes it (`own`), as
    RBAC can't name what isn't there yet.

    A supervisor namespace is never more than itself.
    """
    if cluster.key.kind == NAMESPACE:
        return Api(cluster.key, cluster.key.name)
    made = own is not None and own.spec is not None and own.spec.cluster == cluster.key.name
    return Api(cluster.key, "" if made else written)


def real_name(written: str, cluster: str, need: ResolvedRef | None) -> str:
    """A namespace's name in the cluster: where `written` is a `namespace` of this site in that cluster, its
    name there.
    """
    spec = (need.spec or need.state) if need is not None else None
    return (spec.namespace or written) if spec is not None and spec.cluster == cluster else written
