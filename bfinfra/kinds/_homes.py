"""Where Kubernetes objects live: the clusters among the needs, and one bulk read over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from pydantic import StringConstraints

from bfinfra.backends.kubernetes import Cluster, Clusters
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError, RemoteError
from bfinfra.model.kind import Around, Need
from bfinfra.model.names import DNS_LABEL
from bfinfra.model.refs import Key

CLUSTERS = ("tanzu_cluster", "supervisor_namespace", "kubernetes_cluster")
DnsLabel = Annotated[str, StringConstraints(pattern=f"^{DNS_LABEL}$")]
T = TypeVar("T")


@dataclass(frozen=True)
class Home:
    """A cluster that can be asked now. `namespace`: the only one that may be looked into, "" = all."""

    key: Key
    endpoint: Endpoint
    cluster: Cluster

    @property
    def namespace(self) -> str:
        """A supervisor namespace is a home of its own; other clusters are looked at as a whole."""
        return self.endpoint.namespace if self.key.kind == "supervisor_namespace" else ""


@dataclass(frozen=True)
class Answers(Generic[T]):
    """What each home answered; `unreadable`: what `Seen.unreadable` takes."""

    found: Mapping[Key, T]
    unreadable: Mapping[str, str] = field(default_factory=dict)


def homes(clusters: Clusters, needs: Mapping[Key, Need], kinds: Iterable[str] = CLUSTERS) -> dict[Key, Home]:
    """Every cluster that stands and has an address; one that isn't up yet holds nothing."""
    found = {}
    for key, need in needs.items():
        endpoint = getattr(need.state, "endpoint", None)
        if key.kind in kinds and isinstance(endpoint, Endpoint):
            found[key] = Home(key, endpoint, clusters.at(endpoint))
    return found


def home_of(name: str, known: Iterable[Key], kinds: Iterable[str] = CLUSTERS) -> Key | None:
    """The key that a reference `name` means among those known, or None."""
    keys = set(known)
    return next((key for kind in kinds if (key := Key(kind, name)) in keys), None)


def survey(where: Mapping[Key, Home], placed: Mapping[str, Key | None], read: Callable[[Home], T], *, others: bool) -> Answers[T]:
    """Ask every home once. `placed`: wanted name → its home's key.

    A home that doesn't answer leaves what is wanted there unreadable; RemoteError where none answers or only few names were asked for:
    the caller tries that again.
    """
    found: dict[Key, T] = {}
    failed: dict[Key, BfinfraError] = {}
    for key, home in where.items():
        try:
            found[key] = read(home)
        except RemoteError as error:
            if not others:
                raise
            failed[key] = error
    if failed and not found:
        raise next(iter(failed.values()))
    unreadable = {f"(all in {key})": str(error) for key, error in failed.items()}
    unreadable |= {name: str(failed[key]) for name, key in placed.items() if key in failed}
    return Answers(found, unreadable)


def asked(where: Mapping[Key, Home], placed: Mapping[str, Key | None], wanted: Mapping[str, Any], *, others: bool) -> dict[Key, Home]:
    """The homes to ask: all of them, or only those where the wanted live."""
    if others or any(spec is None for spec in wanted.values()):
        return dict(where)
    return {key: home for key, home in where.items() if key in placed.values()}


def namespace_name(around: Around, field_name: str, written: str, cluster: str) -> str:
    """The namespace's name in the cluster: a reference to a `namespace` of this site there, else what was written."""
    need = around.needs.get(field_name)
    spec = (need.spec or need.state) if need is not None else None
    return (spec.namespace or written) if spec is not None and spec.cluster == cluster else written
