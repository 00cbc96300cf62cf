"""Base of the kinds whose objects have a mark in Kubernetes clusters. It lists the objects with the site's
mark in each cluster, reads the objects in desired places, and finds out to which resource each belongs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from bfinfra.backends.kubernetes.marks import mark_of, selector
from bfinfra.kinds.cluster.base import spaces
from bfinfra.kinds.cluster.base.objects import Object, Place, place_of
from bfinfra.kinds.cluster_locator import CLUSTERS, Answers, Cluster, ClusterLocator, cluster_key
from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import Forbidden, Refusal
from bfinfra.model.kind import Kind, LastWriter, Observation, S, T
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters

R = TypeVar("R")
A = TypeVar("A")
MAKERS = frozenset({"manifests", "gpu_operator"})
"""Kinds whose objects may be namespaces that no field names."""


@dataclass(frozen=True)
class Existing(Generic[T]):
    """A resource that a cluster has. `fits`: whether its spec wants it there; `state`: returns its state,
    with more requests if it needs them.
    """

    name: str
    fits: bool
    state: Callable[[], T]


class KubernetesObjects(Kind[S, T], Generic[S, T, R]):
    """A kind of marked objects in clusters. `R`: what one read of a cluster returns."""

    name: ClassVar[str]
    """The kind's name in marks."""
    cluster_kinds: ClassVar[tuple[str, ...]] = CLUSTERS
    """The kinds of clusters that have such objects."""
    old_place_first: ClassVar[bool] = True
    """Whether, if a resource is both in its wanted and in an old place, the state is that of the old place,
    which has to be deleted.
    """

    def __init__(self, clusters: Clusters, site: Site) -> None:
        self._clusters = clusters
        self._locator = ClusterLocator(clusters, self.cluster_kinds)
        self._site = site.name
        self._resources = site.resources
        self._complete = not any(key.kind in MAKERS or spec.after for key, spec in site.resources.items())

    @abstractmethod
    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> R:
        """Reads such objects from a cluster."""

    @abstractmethod
    def _existing(
        self,
        read: R,
        cluster: Cluster,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterable[Existing[T]]:
        """The resources among what was read from a cluster."""

    def _facts(self) -> object:
        """Return the other facts that decisions need."""
        return None

    def _writers(self, state: T, fields: Sequence[str]) -> Mapping[str, LastWriter]:
        """The last writer by field, as far as it is known."""
        return {}

    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads each cluster once."""
        answers = self._locator.ask(
            {name: getattr(spec, "cluster", None) for name, spec in wanted.items()},
            needs,
            lambda cluster: self._read(cluster, wanted, needs, include_unlisted=include_unlisted),
            include_unlisted=include_unlisted,
        )
        states: dict[str, T] = {}
        for key, read in answers.found.items():
            cluster = answers.clusters[key]
            for each in self._existing(read, cluster, wanted, needs, include_unlisted=include_unlisted):
                known = each.name in states and each.fits == self.old_place_first
                if not known and (include_unlisted or each.name in wanted):
                    self._locator.saw(each.name, key)
                    states[each.name] = each.state()
        refused = self._refused(answers, wanted, states) if include_unlisted else {}
        return Observation(states, self._facts(), answers.unreadable, refused)

    def _refused(
        self, answers: Answers[R], wanted: Mapping[str, S | None], states: Mapping[str, T]
    ) -> dict[str, Refusal]:
        """Why resources that are to be made can't be: a namespace is missing, or being deleted. Asks each
        cluster for its namespaces, in a survey once for all kinds, if something is to be made in one.
        """
        found: dict[str, Refusal] = {}
        for key in answers.found:
            cluster = answers.clusters[key]
            due = {
                name: spec
                for name, spec in wanted.items()
                if spec is not None
                and cluster_key(getattr(spec, "cluster", ""), answers.clusters, self.cluster_kinds) == key
                and (name not in states or states[name].going)
            }
            if not due or not spaces.whole(cluster):
                continue
            if needs := spaces.needed(due, self._resources, cluster):
                ask = partial(cluster.client.list, "v1", "Namespace")
                try:
                    there = self._shared(cluster, "v1", "Namespace", "all", ask)
                except Forbidden:  # an account for some namespaces
                    continue
                found |= dict(spaces.refusals(needs, there, cluster, complete=self._complete))
        return found

    def audit(
        self, asked: Mapping[str, tuple[T | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """The last writer of each field, from the managers in the objects' managedFields."""
        return {
            name: self._writers(state, fields) if state is not None else {}
            for name, (state, fields) in asked.items()
        }

    def _of_states(
        self, states: Mapping[str, T], cluster: Cluster, wanted: Mapping[str, S | None]
    ) -> Iterator[Existing[T]]:
        """The resources whose states were read already, by name."""
        for name, state in states.items():
            yield Existing(name, self._fits(wanted.get(name), cluster), partial(_itself, state))

    def _fits(self, spec: S | None, cluster: Cluster) -> bool:
        """Return whether the spec wants it in this cluster."""
        return getattr(spec, "cluster", None) == cluster.key.name

    def _own_name(self, obj: Mapping[str, object]) -> str | None:
        """The resource of this site and kind that made the object; None if none did."""
        mark = mark_of(obj)
        return mark.name_of(self._site, self.name) if mark is not None else None

    def _name(self, obj: Mapping[str, object], owners: Mapping[Place, str]) -> str:
        """The resource of an object: by this site's mark, or the resource that wants its place; "" if there
        is none.
        """
        return self._own_name(obj) or owners.get(place_of(obj), "")

    def _marked(self, cluster: Cluster, api: str, thing: str, *, include_unlisted: bool) -> list[Object]:
        """This site's objects of one type."""
        ask = partial(cluster.client.list, api, thing, cluster.namespace, selector(self._site))
        return [*(self._shared(cluster, api, thing, "ours", ask) if include_unlisted else ask())]

    def _listed(
        self, cluster: Cluster, api: str, thing: str, places: Iterable[Place], *, include_unlisted: bool
    ) -> list[Object]:
        """This site's objects of one type, and the objects in these places."""
        listed = self._marked(cluster, api, thing, include_unlisted=include_unlisted)
        have = {place_of(obj) for obj in listed}
        missing = [place for place in dict.fromkeys(places) if place not in have]
        ask = partial(cluster.client.names, api, thing, cluster.namespace)
        names = partial(self._shared, cluster, api, thing, "names", ask) if include_unlisted else ask
        return [*listed, *cluster.client.find(api, thing, missing, cluster.namespace, names)]

    def _versions(self, cluster: Cluster, group: str, *, include_unlisted: bool) -> tuple[str, ...]:
        """The versions of an API group that the cluster serves. During a survey, kinds share the answer."""
        ask = partial(cluster.client.versions, group)
        return self._shared(cluster, group, "", "versions", ask) if include_unlisted else ask()

    def _shared(self, cluster: Cluster, api: str, thing: str, what: str, ask: Callable[[], A]) -> A:
        """The result of `ask`. During a survey, kinds that read the same type of object share one list."""
        return self._clusters.cache.shared((cluster.endpoint, cluster.namespace, api, thing, what), ask)


class ObjectsByName(KubernetesObjects[S, T, dict[str, T]], Generic[S, T]):
    """A kind whose read of a cluster returns each resource's state, by the resource's name."""

    def _existing(
        self,
        read: dict[str, T],
        cluster: Cluster,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterator[Existing[T]]:
        return self._of_states(read, cluster, wanted)


def _itself(state: T) -> T:
    return state
