"""Base of the kinds of Secrets in several namespaces: observe, run."""

from __future__ import annotations

import base64
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from bfinfra.backends.kubernetes.marks import mark_only, marked
from bfinfra.kinds.audit import of_field
from bfinfra.kinds.cluster.base.kubernetes_objects import Existing, KubernetesObjects
from bfinfra.kinds.cluster.base.objects import Object, Place, is_at, place_of, version_of
from bfinfra.kinds.cluster.base.replicated_secret.decide import Remove, Write
from bfinfra.kinds.cluster.base.replicated_secret.spec import Spec, places_of
from bfinfra.kinds.cluster.base.replicated_secret.state import Content, State, state_of
from bfinfra.kinds.cluster_locator import Cluster, api_of
from bfinfra.model import kind, rights
from bfinfra.model.context import ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError
from bfinfra.model.kind import LastWriter, Observation
from bfinfra.model.refs import Key
from bfinfra.model.rights import may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.survey_cache import KnownObjects, SurveyCache

FEW = 12  # up to this many Secrets of one resource are read one by one rather than listed
FEW_OF_SEVERAL = 3  # the same for several resources that are read together: a list costs no more than these

S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=State)


class ReplicatedSecret(KubernetesObjects[S, T, list[Object]], Generic[S, T]):
    """A kind of Secrets with the same content in several namespaces."""

    step_types: ClassVar[tuple[type[Step], ...]] = (Write, Remove)
    survey_privileges = (may("list", "secrets", rights.CLUSTERS),)
    resource_privileges: ClassVar[tuple[rights.Right, ...]] = (may("get", "secrets", "namespaces"),)
    secret_type: ClassVar[str] = "Opaque"  # noqa: S105 - a type, no secret

    def __init__(self, clusters: Clusters, cache: SurveyCache, site: Site) -> None:
        super().__init__(clusters, site)
        self._cache = cache
        self._contents: dict[str, Content | None] = {}
        """The desired content, during a comparison."""

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
        """The desired content, or None if it isn't known yet. Raises BfinfraError if its source can't be
        read.
        """

    @abstractmethod
    def content(self, step: Write) -> Content:
        """The content, read again from the step's source just before it is written. Raises BfinfraError."""

    def unchanged(self, names: Sequence[str], objects: Sequence[Object]) -> bool:
        """Return whether the Secrets of these names exist and hold what was last written; used if the desired
        content isn't known.
        """
        return False

    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Lists this site's Secrets in each cluster, and reads the Secrets with wanted names. Reads them one
        by one if they are few.
        """
        contents, unreadable = self._expected(wanted, needs)
        self._contents |= contents
        try:
            observation = super().observe(wanted, needs, include_unlisted=include_unlisted)
        finally:
            for name in contents:
                self._contents.pop(name, None)
        return replace(observation, facts=None, unreadable={**observation.unreadable, **unreadable})

    def _existing(
        self,
        read: list[Object],
        cluster: Cluster,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterator[Existing[Any]]:
        owners = {
            place: name
            for name, spec in wanted.items()
            for place in places_of(name, spec, cluster.key, needs)
        }
        of: dict[str, list[Object]] = {}
        for obj in read:
            if name := self._name(obj, owners):
                of.setdefault(name, []).append(obj)
        known = self._objects(cluster.endpoint)
        for name in wanted:
            known.forget(name)
        for name, found in of.items():
            known.saw(name, {place_of(obj): version_of(obj) for obj in found})
        for name, found in of.items():
            spec = wanted.get(name)
            unchanged = partial(self.unchanged, spec.names(name) if spec else ())
            state = partial(state_of, found, cluster, self._contents.get(name), unchanged)
            yield Existing(name, self._fits(spec, cluster), state)

    def _writers(self, state: T, fields: Sequence[str]) -> dict[str, LastWriter]:
        """The last writer, from the managers of the Secrets' data."""
        writers: dict[str, LastWriter] = {}
        copies = {f"content in {space}": (space, copy.names) for space, copy in state.copies.items()}
        for each in fields:
            space, names = copies.get(each, ("", ()))
            traces = [
                of_field(self._clusters.at(state.home).get("v1", "Secret", secret, space), "data")
                for secret in sorted(names)
            ]
            if found := max(filter(None, traces), key=lambda writer: writer.at or 0, default=None):
                writers[each] = found
        return writers

    def run(self, step: Step, report: kind.Report) -> None:
        """Writes one namespace: creates a Secret that doesn't exist, applies one that does."""
        match step:
            case Write(home=Endpoint() as home) if step.uids:
                for name, uid in step.uids.items():
                    marking = mark_only(self._manifest(step, name, {}), step.mark, uid)
                    self._wrote(home, (step.namespace, name), self._clusters.at(home).apply(marking))
            case Write(home=Endpoint() as home):
                for name, values in self.content(step).items():
                    manifest, cluster = self._manifest(step, name, values), self._clusters.at(home)
                    # force: the plan announced that the content will be replaced
                    made = (
                        cluster.apply(manifest, force=True)
                        if name in step.existing
                        else cluster.create(manifest)
                    )
                    self._wrote(home, (step.namespace, name), made)
            case Remove(home=home, namespace=namespace):
                for name in step.names:
                    preconditions = self._objects(home).version(step.owner, (namespace, name))
                    left = self._clusters.at(home).delete(
                        "v1", "Secret", name, namespace, preconditions=preconditions
                    )
                    self._wrote(home, (namespace, name), left)
            case _:
                raise AssertionError(step)

    def _objects(self, home: Endpoint) -> KnownObjects[Place, Object | None]:
        return self._cache.objects((self.name, home))

    def _wrote(self, home: Endpoint, place: Place, answer: Object | None) -> None:
        """Remembers a Secret after a write; None: it is deleted. Forgets it if the answer is another object,
        so that the next read asks the server.
        """
        if answer is None or is_at(answer, place):
            self._objects(home).wrote(place, answer)

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
            place for name, spec in wanted.items() for place in places_of(name, spec, cluster.key, needs)
        ]
        known = self._objects(cluster.endpoint)
        asked = dict.fromkeys([*places, *known.noted(wanted)])
        answers = {place: known.answer(place) for place in asked}
        if not include_unlisted and len(asked) <= (FEW if len(wanted) == 1 else FEW_OF_SEVERAL):
            found = [
                answer[0] if answer else cluster.client.get("v1", "Secret", place[1], place[0])
                for place, answer in answers.items()
            ]
            return [obj for obj in found if obj]
        return self._listed(cluster, "v1", "Secret", places, include_unlisted=include_unlisted)
