"""Base of the kinds whose objects come from a rendering: observe, steps, readiness, run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from bfinfra.backends.helm import Capabilities, Charts, OciChart
from bfinfra.backends.kubernetes.errors import NotServed
from bfinfra.backends.kubernetes.marks import mark_only, marked
from bfinfra.kinds.cluster.base.kubernetes_objects import ObjectsByName
from bfinfra.kinds.cluster.base.objects import Object, Place, place_of
from bfinfra.kinds.cluster.base.rendered import decide
from bfinfra.kinds.cluster.base.rendered.hooks import (
    removal_manifest,
    run_of,
    unfinished,
    unfinished_of_removal,
)
from bfinfra.kinds.cluster.base.rendered.objects import DEFINITION, RENDERED, Id, digest
from bfinfra.kinds.cluster.base.rendered.readiness import readiness
from bfinfra.kinds.cluster.base.rendered.rendering import Namespaced, Rendering
from bfinfra.kinds.cluster.base.rendered.rights import of_types
from bfinfra.kinds.cluster.base.rendered.state import (
    HOOKS,
    State,
    record_name,
    record_of,
    removal_data,
    removal_of,
    state_of,
)
from bfinfra.kinds.cluster.base.rendered.steps import (
    STEPS,
    AwaitHook,
    AwaitObjects,
    Begin,
    Create,
    Delete,
    DropHook,
    Forget,
    NoteHooks,
    Objects,
    Prune,
    Replace,
    RunHook,
    RunRemovalHook,
    Update,
)
from bfinfra.kinds.cluster.base.rendered.survey import (
    capabilities,
    in_a_served_version,
    inside,
    places,
    scopes,
    types,
)
from bfinfra.kinds.cluster.base.rendered.writers import writers
from bfinfra.kinds.cluster_locator import WHOLE, Cluster, api_of, cluster_key, real_name
from bfinfra.model.awaited import Absent, held
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Problem, Refusal, SecretMissing
from bfinfra.model.kind import LastWriter, Observation, Report
from bfinfra.model.readiness import READY, Readiness, waiting
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec
from bfinfra.model.rights import CLUSTERS, Api, PrivilegePlaces, Right, Use, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient, Clusters

S = TypeVar("S", bound=Spec)
Result = Rendering | Refusal | Problem
"""A rendering, or why there is none: Absent if a file is not there yet."""


class RenderedObjects(ObjectsByName[S, State]):
    """A kind whose resources are several objects of any type, each marked, and a record of their types."""

    cluster_kinds, old_place_first = WHOLE, False
    deadline = 1800
    step_types = STEPS
    survey_privileges = (may("list", "configmaps", CLUSTERS),)
    resource_privileges: ClassVar[tuple[Right, ...]] = (may("get", "configmaps", "record"),)

    def __init__(self, clusters: Clusters, charts: Charts, site: Site) -> None:
        super().__init__(clusters, site)
        self._charts = charts
        self._results: dict[str, Result] = {}
        self._served: dict[tuple[str, str, str], str] = {}
        """The apiVersion in which a resource's objects of a group and kind were listed."""

    @staticmethod
    @abstractmethod
    def render(name: str, spec: Any, capabilities: Capabilities, namespace: str, of: Namespaced) -> Rendering:
        """The objects of a resource. Raises ValueError, or Refusal."""

    @staticmethod
    @abstractmethod
    def missing(spec: Any) -> Absent | None:
        """The first of its files that is not there yet."""

    @staticmethod
    def remote(spec: Any) -> Sequence[OciChart]:
        """The charts in registries that it is rendered from."""
        return ()

    @staticmethod
    @abstractmethod
    def source(spec: Any) -> str:
        """The field that names what is rendered."""

    @staticmethod
    def asks(spec: Any) -> tuple[str, ...] | None:
        """The APIs of the cluster that the rendering asks for; None if it depends on no cluster. Raises
        ValueError.
        """
        return None

    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Lists the records, then the objects of each recorded or rendered type. Facts: name → Rendering, or
        the Problem or Refusal of one that can't be made.
        """
        for name in wanted:
            self._results.pop(name, None)
        observation = super().observe(wanted, needs, include_unlisted=include_unlisted)
        for name, spec in wanted.items():
            if spec is not None and name not in self._results:
                self._results[name] = self._rendered(name, spec, None, needs)
        return replace(observation, facts=dict(self._results))

    @classmethod
    def steps(cls, name: str, spec: S | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        if spec is None:
            return tuple(decide.gone(name, state, context)) if state is not None else ()
        result = (context.facts or {}).get(name)
        if isinstance(result, Absent):
            raise held(result, cls.source(spec))
        if isinstance(result, Refusal):
            raise result
        if not isinstance(result, Rendering):
            why = str(result) if result is not None else "its cluster was not read"
            raise decide.refused(cls.source(spec), why)
        if not spec.after:
            decide.all_known(result, cls.source(spec), context)
        return tuple(decide.steps(name, spec, result, state, context))

    @staticmethod
    def places(name: str, spec: Any, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The namespace of its record; for its objects the whole cluster, as they may be anywhere in it."""
        return {
            "record": (api_of(needs["cluster"], spec.namespace, needs.get("namespace")),),
            "objects": (Api(needs["cluster"].key),),
        }

    @classmethod
    def own_rights(cls, name: str, spec: Any) -> Iterable[tuple[Use, Right]]:
        """The rights on the types in its rendering; on everything if it can't be rendered here."""
        try:
            found = cls.render(name, spec, Capabilities(), spec.namespace, lambda *_: None)
        except (ValueError, OSError, SecretMissing):
            return [(use, may("*", "*.*", "objects")) for use in Use]
        return of_types(found)

    def ready(self, spec: S, state: State) -> Readiness:
        """Ready when all objects that exist are, and the cluster serves the types that they define; on a
        removal, when none is being deleted.
        """
        running = unfinished(state) if spec is not None else unfinished_of_removal(state)
        if running:
            answers = (readiness(each, thing.manifest) for each, thing in running.items())
            return next((each for each in answers if each != READY), READY)
        patient = getattr(spec, "wait", "ready") == "ready"
        for each, thing in state.things.items():
            if ((not patient and each.type != DEFINITION) or spec is None) and not thing.going:
                continue
            found = readiness(each, thing.manifest)
            if found != READY:
                return found
        if spec is None:
            return READY
        return self._serves(state)

    def _serves(self, state: State) -> Readiness:
        """Return whether objects of each defined type can be listed, which is later than discovery shows
        them.
        """
        cluster = self._clusters.at(state.home)
        for thing in (thing for each, thing in state.things.items() if each.type == DEFINITION):
            body = thing.manifest["spec"]
            served = next((v["name"] for v in body["versions"] if v.get("served")), "")
            api, kind = f"{body['group']}/{served}", body["names"]["kind"]
            if not served:
                continue
            if not cluster.serves(api, kind):
                return waiting(f"the cluster does not serve {kind} yet")
            cluster.list(api, kind, name="bfinfra")
        return READY

    def run(self, step: Step, report: Report) -> None:
        """Runs one step: a request for each object, in order."""
        match step:
            case Begin(home=Endpoint() as home):
                manifest = marked(step.manifest(), step.mark)
                if step.removal:
                    manifest["data"] |= removal_data(self._rendering(step.name).removal)
                if type(step) is Begin:
                    self._clusters.at(home).create(manifest)
                else:
                    _patch(self._clusters.at(home), manifest)
            case Forget(home=home):
                self._clusters.at(home).delete("v1", "ConfigMap", step.record, step.namespace)
            case NoteHooks(home=Endpoint() as home):
                body = {"data": {f"{HOOKS}{step.phase}": step.rendered}}
                self._clusters.at(home).patch("v1", "ConfigMap", step.record, body, step.namespace)
            case Objects(home=Endpoint() as home):
                for each in step.objects:
                    self._run_one(step, self._clusters.at(home), each)
            case _:
                raise AssertionError(step)

    def _run_one(self, step: Objects, cluster: ClusterClient, each: Id) -> None:
        match step:
            case RunRemovalHook():
                (record,) = cluster.find("v1", "ConfigMap", [(step.namespace, step.record)])
                cluster.create(marked(removal_manifest(each, step.phase, removal_of(record)), step.mark))
            case Create():
                cluster.create(self._manifest(step, each))
            case Update():
                cluster.apply(self._manifest(step, each), force=True)  # the plan showed the changes of others
            case AwaitHook() | AwaitObjects():
                return  # the engine waits
            case Replace() | Prune() | Delete() | DropHook():
                api = self._api(step.name, each)
                try:
                    cluster.delete(api, each.kind, each.name, each.namespace)
                except NotServed:
                    return  # its definition went, and so did it
            case _:
                raise AssertionError(step)

    def _manifest(self, step: Objects, each: Id) -> dict[str, Any]:
        result = self._rendering(step.name)
        manifest = (result.hooks if isinstance(step, RunHook) else result.manifests)[each]
        if isinstance(step, Update) and step.uids:
            return mark_only(manifest, step.mark, step.uids[each])
        found = marked(manifest, step.mark)
        noted = run_of(step.phase, result.digest) if isinstance(step, RunHook) else digest(manifest)
        found["metadata"]["annotations"][RENDERED] = noted
        return found

    def _rendering(self, name: str) -> Rendering:
        result = self._results[name]
        assert isinstance(result, Rendering)
        return result

    def _api(self, name: str, each: Id) -> str:
        """The version of its type that the last survey listed."""
        return self._served.get((name, *each.type), "v1")

    def _facts(self) -> object:
        return dict(self._results)

    def _writers(self, state: State, fields: Sequence[str]) -> Mapping[str, LastWriter]:
        return writers(state, fields)

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> dict[str, State]:
        records = self._records(cluster, include_unlisted=include_unlisted)
        found: dict[str, State] = {}
        here = {
            name: spec
            for name, spec in wanted.items()
            if spec is not None and cluster_key(str(getattr(spec, "cluster", "")), [cluster.key], WHOLE)
        }
        for name, spec in here.items():
            self._results[name] = self._rendered(name, spec, cluster, needs)
        for name in dict.fromkeys((*here, *records)):
            if name in here or include_unlisted or name in wanted:
                state = self._state(
                    name, cluster, records.get(name), gone=wanted.get(name) is None, shared=include_unlisted
                )
                if state is not None:
                    found[name] = state
        return found

    def _records(self, cluster: Cluster, *, include_unlisted: bool) -> dict[str, Object]:
        found = {}
        for obj in self._marked(cluster, "v1", "ConfigMap", include_unlisted=include_unlisted):
            name = self._own_name(obj)
            if name and obj["metadata"]["name"] == record_name(self.name, name):
                found[name] = obj
        return found

    def _rendered(
        self, name: str, spec: S, cluster: Cluster | None, needs: Mapping[Key, ResolvedRef]
    ) -> Result:
        if away := self.missing(spec):
            return away
        client = cluster.client if cluster else None
        try:
            for chart in self.remote(spec):
                self._charts.pull(chart)
            asked = self.asks(spec)
            known = Capabilities() if client is None or asked is None else capabilities(client, asked)
            namespace = _namespace(spec, needs)
            self._check(spec, client, needs, namespace)
            return self.render(name, spec, known, namespace, scopes(client))
        except Refusal as refusal:
            return refusal
        except SecretMissing as error:
            return error.problems[0]
        except ValueError as error:
            return Problem(str(error))

    def _check(
        self, spec: S, client: ClusterClient | None, needs: Mapping[Key, ResolvedRef], namespace: str
    ) -> None:
        """Raises Refusal if the cluster can't take the objects. `client`: None if the cluster can't be read
        now.
        """

    def _state(
        self, name: str, cluster: Cluster, record: Object | None, *, gone: bool, shared: bool
    ) -> State | None:
        """Return the cluster's part of a resource. `gone`: it shall be deleted; `shared`: during a survey,
        kinds share lists.
        """
        result = None if gone else self._results.get(name)
        rendering = result if isinstance(result, Rendering) else None
        if record is None and rendering is not None:
            place = (rendering.namespace, record_name(self.name, name))
            record = next(iter(cluster.client.find("v1", "ConfigMap", [place])), None)
        objects: list[Object] = []
        noted = record_of(record) if record else None
        for of, api in types(noted.types if noted else (), rendering).items():
            here = places(rendering, (noted and noted.objects) or (), of)

            def read(served: str, kind: str = of[1], here: list[Place] = here) -> list[Object]:
                return self._listed(cluster, served, kind, here, include_unlisted=shared)

            self._served[name, *of], found = in_a_served_version(cluster.client, api, read)
            objects += [
                obj
                for obj in found
                if obj["metadata"]["name"] != record_name(self.name, name)
                and (self._own_name(obj) == name or place_of(obj) in here)
            ]
        if record is None and not objects:
            return None
        namespace = record["metadata"]["namespace"] if record else rendering.namespace if rendering else ""
        contents = tuple(inside(cluster.client, objects, self._site)) if gone else ()
        return state_of(record, objects, cluster, namespace, contents)


def _patch(cluster: ClusterClient, manifest: Mapping[str, Any]) -> None:
    metadata = manifest["metadata"]
    body = {
        "metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]},
        "data": manifest["data"],
    }
    cluster.patch("v1", "ConfigMap", metadata["name"], body, metadata["namespace"])


def _namespace(spec: Any, needs: Mapping[Key, ResolvedRef]) -> str:
    return real_name(spec.namespace, spec.cluster, needs.get(Key("namespace", spec.namespace)))
