"""Secrets that stand under fixed names in several namespaces of a cluster: what token_secret and
registry_credential share.

Their content is compared in memory while observing; states say only whether it is right, steps only where it
comes from.
"""

from __future__ import annotations

import base64
import binascii
import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from bfinfra.backends.kubernetes.marks import mark_of, marked, selector
from bfinfra.kinds import capabilities
from bfinfra.kinds.audit import of_field
from bfinfra.kinds.cluster.base.sights import Object, Sights, place_of
from bfinfra.kinds.cluster_locator import (
    CLUSTERS,
    Cluster,
    ClusterLocator,
    DnsLabel,
    api_of,
    cluster_key,
    real_name,
)
from bfinfra.model import compare, conflict, kind, resource, rights
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError
from bfinfra.model.kind import LastWriter, Observation
from bfinfra.model.mark import Mark, common
from bfinfra.model.order import Capability, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import Use, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters

Content = Mapping[str, Mapping[str, bytes]]
"""Secret name → key → value."""
Unchanged = Callable[[Sequence[Object]], bool]
FEW = 12  # Secrets that are asked for one by one rather than listed


class Spec(resource.Spec):
    """What both kinds have in common."""

    cluster: Annotated[str, Ref(*CLUSTERS)]
    """Cluster, or supervisor namespace, that the Secret is in."""
    namespaces: Annotated[
        tuple[Annotated[DnsLabel, Ref("namespace", optional=True)], ...], Field(min_length=1)
    ]
    """Namespaces that get it: names of this site's `namespace` resources, or of namespaces that are there
    anyway.
    """

    def takes(self, name: str) -> Iterator[Taken]:
        """The Secrets in its namespaces."""
        for index, namespace in enumerate(self.namespaces):
            for secret in self.names(name):
                yield conflict.thing(
                    f"namespaces.{index}", f"Secret/{secret} in {namespace}", "cluster", self.cluster
                )

    @abstractmethod
    def names(self, name: str) -> tuple[str, ...]:
        """The Secrets in each namespace, for the resource `name`."""

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its Secrets."""
        return (
            capabilities.secret(each, where, self.cluster, site)
            for where in self._spaces(site)
            for each in self.names(name)
        )

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The namespaces."""
        return (capabilities.namespace(each, self.cluster, site) for each in self._spaces(site))

    def _spaces(self, site: Specs) -> Iterator[str]:
        return (capabilities.space(each, self.cluster, site) for each in self.namespaces)


@dataclass(frozen=True)
class Copy:
    """What stands in one namespace. `right`: all Secrets are there with the content that is wanted; `mark`:
    what these bear.
    """

    names: frozenset[str]
    right: bool
    mark: Mark | None


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The copies by namespace."""

    cluster: Annotated[str, Ref(*CLUSTERS)]
    home: Endpoint
    copies: Mapping[str, Copy] = field(default_factory=dict)
    namespaces: tuple[Annotated[str, Ref("namespace", optional=True)], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Write(Step):
    """write {what} to namespace {namespace} in {cluster}"""

    rights = (may("create patch", "secrets", "namespaces"),)

    what: str
    cluster: str
    namespace: str
    home: Endpoint | Unknown
    names: tuple[str, ...]
    standing: tuple[str, ...]
    source: Any
    """Where the content comes from: a reference, never the content."""
    mark: Mark

    @property
    def exclusive(self) -> bool:
        """Making is; replacing is not."""
        return not self.standing


@dataclass(frozen=True, kw_only=True)
class Remove(Step):
    """remove {what} from namespace {namespace} in {cluster}"""

    rights = (may("delete", "secrets", "namespaces"),)
    uses = (Use.DESTROY,)

    what: str
    cluster: str
    namespace: str
    home: Endpoint
    owner: str
    names: tuple[str, ...]

    @property
    def exclusive(self) -> bool:
        """Only what was seen is removed, in the version that was seen."""
        return True


S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=State)


class ReplicatedSecret(kind.Kind[S, T]):
    """A kind whose objects are Secrets with the same content in several namespaces."""

    step_types: ClassVar[tuple[type[Step], ...]] = (Write, Remove)
    survey_privileges = (may("list", "secrets", rights.CLUSTERS),)
    resource_privileges: ClassVar[tuple[rights.Right, ...]] = (may("get", "secrets", "namespaces"),)
    name: ClassVar[str]
    """The kind's name, as marks have it."""
    secret_type: ClassVar[str] = "Opaque"  # noqa: S105 - a type, no secret

    def __init__(self, clusters: Clusters, site: Site) -> None:
        self._clusters = clusters
        self._locator = ClusterLocator(clusters)
        self._sights = Sights()
        self._site = site.name

    @staticmethod
    def places(
        name: str, spec: S, needs: Mapping[str, ResolvedRef], datacenter: str
    ) -> rights.PrivilegePlaces:
        """The namespaces that get a copy."""
        return {
            "namespaces": tuple(
                api_of(needs["cluster"], space, needs.get(f"namespaces.{i}"))
                for i, space in enumerate(spec.namespaces)
            )
        }

    @abstractmethod
    def expected(self, name: str, spec: S, needs: Mapping[Key, ResolvedRef]) -> Content | None:
        """The content that is wanted, or None where it isn't known yet. Raises BfinfraError where its source
        can't be read.
        """

    @abstractmethod
    def content(self, step: Write) -> Content:
        """The content again, read from the step's source just before it is written. Raises BfinfraError."""

    def unchanged(self, names: Sequence[str], objects: Sequence[Object]) -> bool:
        """Whether the Secrets of these names are there and hold what was last written, where it isn't known
        what is wanted.
        """
        return False

    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """One list of our Secrets a cluster, and a look at what stands under wanted names; a few are asked
        for one by one.
        """
        contents, unreadable = self._expected(wanted, needs)
        placed = {name: spec.cluster if spec else None for name, spec in wanted.items()}
        answers = self._locator.ask(
            placed,
            needs,
            lambda cluster: self._read(cluster, wanted, needs, include_unlisted=include_unlisted),
            include_unlisted=include_unlisted,
        )
        states: dict[str, Any] = {}
        for key, objects in answers.found.items():
            of = self._by_name(objects, key, wanted, needs)
            for name in {**wanted, **of}:
                self._sights.saw(answers.clusters[key].endpoint, name, of.get(name, ()))
            for name, found in of.items():
                spec = wanted.get(name)
                fits = spec is not None and spec.cluster == key.name
                if (include_unlisted or name in wanted) and (name not in states or not fits):
                    self._locator.saw(name, key)
                    unchanged = functools.partial(self.unchanged, spec.names(name) if spec else ())
                    states[name] = _state(found, answers.clusters[key], contents.get(name), unchanged)
        return Observation(states, unreadable={**answers.unreadable, **unreadable})

    def audit(
        self, asked: Mapping[str, tuple[Any, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """By the managers of the Secrets' data."""
        told: dict[str, dict[str, LastWriter]] = {}
        for name, (state, fields) in asked.items():
            copies = (
                {f"content in {space}": (space, copy.names) for space, copy in state.copies.items()}
                if state
                else {}
            )
            for each in fields:
                space, names = copies.get(each, ("", ()))
                traces = [
                    of_field(self._clusters.at(state.home).get("v1", "Secret", secret, space), "data")
                    for secret in sorted(names)
                ]
                if found := max(filter(None, traces), key=lambda trace: trace.at or 0, default=None):
                    told.setdefault(name, {})[each] = found
        return told

    def run(self, step: Step, report: kind.Report) -> None:
        """One namespace: create what isn't there, apply what is."""
        match step:
            case Write(home=Endpoint() as home):
                for name, values in self.content(step).items():
                    manifest, cluster = self._manifest(step, name, values), self._clusters.at(home)
                    # force: the plan said that its content is replaced
                    made = (
                        cluster.apply(manifest, force=True)
                        if name in step.standing
                        else cluster.create(manifest)
                    )
                    self._sights.wrote(home, (step.namespace, name), made)
            case Remove(home=home, namespace=namespace):
                for name in step.names:
                    seen = self._sights.version(home, step.owner, (namespace, name))
                    left = self._clusters.at(home).delete("v1", "Secret", name, namespace, seen=seen)
                    self._sights.wrote(home, (namespace, name), left)
            case _:
                raise AssertionError(step)

    def _manifest(self, step: Write, name: str, values: Mapping[str, bytes]) -> Object:
        data = {key: base64.b64encode(value).decode() for key, value in values.items()}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": self.secret_type,
            "metadata": {"name": name, "namespace": step.namespace},
            "data": data,
        }
        return marked(body, step.mark)

    def _expected(
        self, wanted: Mapping[str, S | None], needs: Mapping[Key, ResolvedRef]
    ) -> tuple[dict[str, Content | None], dict[str, str]]:
        contents: dict[str, Content | None] = {}
        unreadable: dict[str, str] = {}
        for name, spec in wanted.items():
            try:
                contents[name] = self.expected(name, spec, needs) if spec else None
            except BfinfraError as error:
                unreadable[name] = str(error)
        return contents, unreadable

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> list[Object]:
        places = [
            place for name, spec in wanted.items() for place in _places_of(name, spec, cluster.key, needs)
        ]
        asked = dict.fromkeys([*places, *self._sights.places(cluster.endpoint, wanted)])
        answers = {place: self._sights.answer(cluster.endpoint, place) for place in asked}
        if not include_unlisted and len(asked) <= FEW:
            found = [
                answer[0] if answer else cluster.client.get("v1", "Secret", place[1], place[0])
                for place, answer in answers.items()
            ]
            return [obj for obj in found if obj]
        listed = cluster.client.list("v1", "Secret", cluster.namespace, selector(self._site))
        have = {place_of(obj) for obj in listed}
        return [
            *listed,
            *cluster.client.find(
                "v1",
                "Secret",
                [place for place in dict.fromkeys(places) if place not in have],
                cluster.namespace,
            ),
        ]

    def _by_name(
        self,
        objects: Sequence[Object],
        key: Key,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
    ) -> dict[str, list[Object]]:
        """Resource name → its Secrets: ours by their marks, strangers by who wants their place."""
        owner = {place: name for name, spec in wanted.items() for place in _places_of(name, spec, key, needs)}
        found: dict[str, list[Object]] = {}
        for obj in objects:
            mark, metadata = mark_of(obj), obj["metadata"]
            own = mark.name_of(self._site, self.name) if mark is not None else None
            name = own or owner.get((metadata["namespace"], metadata["name"]))
            if name:
                found.setdefault(name, []).append(obj)
        return found


def steps(  # noqa: PLR0913 - everything that a namespace's copy is made of
    name: str,
    spec: Spec | None,
    state: State | None,
    context: PlanContext,
    *,
    what: str,
    source: Any,
    later: Unknown | None = None,
) -> Sequence[Step]:
    """Write where it lacks or is wrong, then remove where it isn't wanted any more.

    `source`: where `content` finds it; `later`: after what it is known.
    """
    if spec is None:
        return () if state is None else tuple(_removals(name, state, {}, what))
    spaces = [
        real_name(space, spec.cluster, context.needs.get(f"namespaces.{i}"))
        for i, space in enumerate(spec.namespaces)
    ]
    here = state if state is not None and state.cluster == spec.cluster else None
    names, copies = spec.names(name), here.copies if here else {}
    file_changes = compare.changes(spec, state.mark if state else None)
    found: list[Step] = []
    for space in spaces:
        copy = copies.get(space)
        wrong = copy is None or not copy.right
        if copy is None or wrong or copy.mark is None or copy.mark.applied != spec.applied():
            own = (
                (Change(f"content in {space}", _found(copy, names), later or f"as in {what}"),)
                if wrong
                else ()
            )
            found.append(
                Write(
                    what=what,
                    cluster=spec.cluster,
                    namespace=space,
                    home=here.home if here else context.needs["cluster"].get("endpoint"),
                    names=names,
                    standing=tuple(sorted(copy.names & set(names))) if copy else (),
                    source=source,
                    mark=context.mark.seal(spec.applied()),
                    changes=(*own, *(file_changes if not found else ())),
                )
            )
    if state is not None:
        found += _removals(name, state, dict.fromkeys(spaces, names) if here else {}, what)
    return found


def _found(copy: Copy | None, names: Sequence[str]) -> str | None:
    """What stands instead, for people; None where there is nothing of it."""
    if copy is None:
        return None
    gone = [name for name in names if name not in copy.names]
    return f"without {', '.join(gone)}" if gone else "other content"


def _removals(name: str, state: State, wanted: Mapping[str, Sequence[str]], what: str) -> list[Step]:
    found: list[Step] = []
    for space, copy in state.copies.items():
        if stale := tuple(sorted(copy.names - set(wanted.get(space, ())))):
            change = (Change(f"content in {space}", f"as in {what}", None),)
            found.append(
                Remove(
                    what=what,
                    cluster=state.cluster,
                    namespace=space,
                    home=state.home,
                    owner=name,
                    names=stale,
                    changes=change,
                )
            )
    return found


def _places_of(
    name: str, spec: Spec | None, key: Key, needs: Mapping[Key, ResolvedRef]
) -> list[tuple[str, str]]:
    """(namespace, Secret) that a spec wants in this cluster."""
    if spec is None or cluster_key(spec.cluster, [key]) is None:
        return []
    spaces = [real_name(space, spec.cluster, needs.get(Key("namespace", space))) for space in spec.namespaces]
    return [(space, secret) for space in spaces for secret in spec.names(name)]


def _state(
    objects: Sequence[Object], cluster: Cluster, content: Content | None, unchanged: Unchanged
) -> State:
    spaces: dict[str, list[Object]] = {}
    for obj in objects:
        if not obj["metadata"].get("deletionTimestamp"):
            spaces.setdefault(obj["metadata"]["namespace"], []).append(obj)
    copies = {space: _copy(found, content, unchanged) for space, found in sorted(spaces.items())}
    return State(
        mark=common([mark_of(o) for o in objects]),
        cluster=cluster.key.name,
        home=cluster.endpoint,
        copies=copies,
        namespaces=tuple(copies),
    )


def _copy(objects: Sequence[Object], content: Content | None, unchanged: Unchanged) -> Copy:
    held = {obj["metadata"]["name"]: values_of(obj) for obj in objects}
    right = (
        unchanged(objects)
        if content is None
        else all(
            name in held and all(held[name].get(key) == value for key, value in values.items())
            for name, values in content.items()
        )
    )
    bearing = [obj for obj in objects if content is None or obj["metadata"]["name"] in content]
    return Copy(frozenset(held), right, common([mark_of(obj) for obj in bearing]))


def values_of(obj: Object) -> dict[str, bytes]:
    """What a Secret holds; what is no base64 counts as empty."""
    found = {}
    for key, text in (obj.get("data") or {}).items():
        try:
            found[key] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            found[key] = b""
    return found
