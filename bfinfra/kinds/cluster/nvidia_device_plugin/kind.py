"""The kind nvidia_device_plugin: observe, steps, readiness, run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Annotated

from bfinfra.backends.kubernetes.marks import mark_of, mark_only, marked, selector
from bfinfra.kinds.audit import of_field
from bfinfra.kinds.cluster.base.kubernetes_objects import Existing, KubernetesObjects
from bfinfra.kinds.cluster.base.objects import place_of
from bfinfra.kinds.cluster.base.pods import pull_secret
from bfinfra.kinds.cluster.nvidia_device_plugin.manifest import (
    LABELS,
    NAME,
    Live,
    Manifest,
    fields,
    manifest,
    replacing,
)
from bfinfra.kinds.cluster.nvidia_device_plugin.readiness import readiness
from bfinfra.kinds.cluster.nvidia_device_plugin.spec import NAME as IMAGE
from bfinfra.kinds.cluster.nvidia_device_plugin.spec import Spec
from bfinfra.kinds.cluster_locator import WHOLE, Cluster, api_of, is_named, real_name
from bfinfra.model import compare, resource
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import LastWriter, Report
from bfinfra.model.readiness import Readiness, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import CLUSTERS as EVERYWHERE
from bfinfra.model.rights import Api, PrivilegePlaces, Use, may
from bfinfra.model.site import Site
from bfinfra.model.step import Disruption, Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters

__all__ = ["NvidiaDevicePlugin", "Spec", "State"]
SETS = "daemonsets.apps"
NODES = may("list", "nodes", "cluster")
"""The fields that must be settled before it counts as ready."""
SILENT = "bfinfra doesn't report why a pod of the plug-in doesn't start"


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The live DaemonSet."""

    cluster: Annotated[str, Ref(*WHOLE)]
    namespace: Annotated[str, Ref("namespace", optional=True)]
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    home: Endpoint
    live: Live = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create DaemonSet {namespace}/nvidia-device-plugin-daemonset in {cluster}"""

    rights = (may("create", SETS, "namespace"), NODES)
    cluster: str
    namespace: str
    home: Endpoint | Unknown
    manifest: Live

    @property
    def exclusive(self) -> bool:
        """True: the call fails if the DaemonSet exists."""
        return True


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """change DaemonSet {namespace}/nvidia-device-plugin-daemonset in {cluster}"""

    rights = (may("patch", SETS, "namespace"), NODES)
    cluster: str
    namespace: str
    home: Endpoint
    patch: Live


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete DaemonSet {namespace}/nvidia-device-plugin-daemonset from {cluster}"""

    rights = (may("delete", SETS, "namespace"),)
    uses = (Use.DESTROY,)
    cluster: str
    namespace: str
    home: Endpoint
    precondition: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Clear(Delete):
    """delete DaemonSet {namespace}/nvidia-device-plugin-daemonset from {cluster}, to make it anew"""

    disruption = Disruption.REPLACE
    why = "a DaemonSet can't move, nor choose its pods by other labels"
    waits_ready = True


class NvidiaDevicePlugin(KubernetesObjects[Spec, State, list[Manifest]]):
    """NVIDIA's device plug-in in a cluster, by which nodes offer their GPUs to pods as nvidia.com/gpu."""

    document = Document.PVRDMA
    undescribed = "a plug-in of somebody else has another manifest, which bfinfra would replace"
    name, cluster_kinds, old_place_first = "nvidia_device_plugin", WHOLE, False
    deadline = 900
    step_types = (Create, Update, Delete, Clear)
    survey_privileges = (may("list", SETS, EVERYWHERE),)
    resource_privileges = (may("list", "pods", "namespace", optional=SILENT),)

    def __init__(self, clusters: Clusters, site: Site) -> None:
        super().__init__(clusters, site)
        self._others: dict[str, tuple[str, ...]] = {}

    def _facts(self) -> dict[str, tuple[str, ...]]:
        """By cluster, the other DaemonSets with a device plug-in of NVIDIA."""
        return dict(self._others)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, changes, deletes; deletes first if a change is not possible."""
        if spec is None:
            return () if state is None or state.going else (_go(Delete, state),)
        wanted = _wanted(spec, context)
        _check(spec, state, wanted, context)
        if state is None or state.going:
            return (_create(spec, wanted, context),)
        now = {
            "cluster": state.cluster,
            "namespace": state.namespace,
            "labels": state.live["spec"].get("selector", {}).get("matchLabels"),
        }
        then = {"cluster": spec.cluster, "namespace": wanted["metadata"]["namespace"], "labels": LABELS}
        adopting = compare.adopting(state.mark)
        if now != then and not adopting:
            return (_go(Clear, state, differences(now, then)), _create(spec, wanted, context))
        drift = () if adopting else differences(fields(state.live), fields(wanted))
        changes = compare.changes(spec, state.mark, drift)
        if not changes:
            return ()
        mark = context.mark.committed(spec.applied())
        patch = (
            mark_only(wanted, mark, str(state.live["metadata"]["uid"]))
            if adopting
            else replacing(marked(wanted, mark), state.live)
        )
        return (
            Update(
                cluster=state.cluster,
                namespace=state.namespace,
                home=state.home,
                patch=patch,
                changes=changes,
            ),
        )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its namespace, and the cluster for nodes."""
        return {
            "cluster": (Api(needs["cluster"].key),),
            "namespace": (api_of(needs["cluster"], spec.namespace, needs.get("namespace")),),
        }

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready when nodes offer the GPUs that its pods found."""
        if state.going or spec is None:
            return waiting("the old one is being removed")
        return readiness(spec, state.live, self._clusters.at(state.home))

    def _writers(self, state: State, fields: Sequence[str]) -> dict[str, LastWriter]:
        writer = of_field(dict(state.live), "spec", "template")
        return dict.fromkeys(fields, writer) if writer else {}

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call."""
        match step:
            case Create(home=Endpoint() as home):
                self._clusters.at(home).create(step.manifest)
            case Update(home=home):
                self._clusters.at(home).patch("apps/v1", "DaemonSet", NAME, step.patch, step.namespace)
            case Delete(home=home):
                self._clusters.at(home).delete(
                    "apps/v1", "DaemonSet", NAME, step.namespace, preconditions=step.precondition
                )
            case _:
                raise AssertionError(step)

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> list[Manifest]:
        """The DaemonSets: all if the site wants one, else this site's."""
        here = any(
            spec is not None and is_named(spec.cluster, cluster.key, WHOLE) for spec in wanted.values()
        )
        return cluster.client.list("apps/v1", "DaemonSet", labels="" if here else selector(self._site))

    def _existing(
        self,
        read: list[Manifest],
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> Iterator[Existing[State]]:
        owners = {
            (_namespace(spec, needs), NAME): name
            for name, spec in wanted.items()
            if spec and is_named(spec.cluster, cluster.key, WHOLE)
        }
        self._others[cluster.key.name] = tuple("/".join(place_of(obj)) for obj in read if _runs_plugin(obj))
        for obj in read:
            name = self._name(obj, owners)
            spec = wanted.get(name)
            if name:
                yield Existing(name, self._fits(spec, cluster), partial(_state, obj, cluster))


def _namespace(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> str:
    return real_name(spec.namespace, spec.cluster, needs.get(Key("namespace", spec.namespace)))


def _state(obj: Manifest, cluster: Cluster) -> State:
    metadata, mark = obj["metadata"], mark_of(obj)
    return State(
        mark=mark,
        cluster=cluster.key.name,
        namespace=metadata["namespace"],
        home=cluster.endpoint,
        live=obj,
        going=bool(metadata.get("deletionTimestamp")),
        registry_credential=((mark.applied if mark else None) or {}).get("registry_credential"),
    )


def _runs_plugin(obj: Manifest) -> bool:
    containers = (((obj.get("spec") or {}).get("template") or {}).get("spec") or {}).get("containers") or ()
    return any(
        str(each.get("image", "")).partition("@")[0].rpartition("/")[2].partition(":")[0] == IMAGE
        for each in containers
    )


def _wanted(spec: Spec, context: PlanContext) -> Manifest:
    namespace = real_name(spec.namespace, spec.cluster, context.needs.get("namespace"))
    return manifest(
        spec,
        namespace,
        pull_secret(context.needs.get("registry_credential"), spec.cluster, namespace, spec.namespace),
    )


def _check(spec: Spec, state: State | None, wanted: Manifest, context: PlanContext) -> None:
    own = {f"{each.namespace}/{NAME}" for each in (state,) if each is not None} | {
        f"{wanted['metadata']['namespace']}/{NAME}"
    }
    if foreign := [each for each in (context.facts or {}).get(spec.cluster, ()) if each not in own]:
        raise Refusal(
            f"DaemonSet {foreign[0]} offers the GPUs of {spec.cluster} already",
            field="cluster",
            why="two plug-ins would offer the same GPUs",
            next=(
                "remove that one (Helm's chart or the GPU operator may have made it), or remove this one "
                "from the site"
            ),
        )
    space = context.needs.get("namespace")
    if (
        space is not None
        and space.spec is not None
        and space.spec.cluster == spec.cluster
        and (level := space.spec.pod_security.enforce or "not given") != "privileged"
    ):
        raise Refusal(
            f"Pod Security refuses the plug-in's pods in {spec.namespace}",
            field="namespace",
            why=f"they mount a folder of the node; the namespace's level is {level}",
            next=f"write pod_security: {{enforce: privileged}} into namespace/{spec.namespace}",
        )


def _create(spec: Spec, wanted: Manifest, context: PlanContext) -> Create:
    committed = marked(wanted, context.mark.committed(spec.applied()))
    return Create(
        cluster=spec.cluster,
        namespace=wanted["metadata"]["namespace"],
        home=context.needs["cluster"].get("endpoint"),
        manifest=committed,
        changes=differences(None, spec.applied()),
    )


def _go(step: type[Delete], state: State, changes: tuple[Change, ...] = ()) -> Delete:
    return step(
        cluster=state.cluster,
        namespace=state.namespace,
        home=state.home,
        precondition={"uid": str(state.live["metadata"]["uid"])},
        changes=changes,
    )
