"""The kind gpu_operator: manifests with the operator's settings, and what its GPUs need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bfinfra.backends.helm import Capabilities
from bfinfra.backends.kubernetes.marks import notes
from bfinfra.kinds.cluster.base.objects import Object
from bfinfra.kinds.cluster.base.rendered.objects import Id
from bfinfra.kinds.cluster.base.rendered.rendering import Namespaced, Rendering, rendering
from bfinfra.kinds.cluster.base.rendered.state import State
from bfinfra.kinds.cluster.base.rendered.steps import Objects, Update
from bfinfra.kinds.cluster.gpu_operator import decide, drivers, layouts, readiness, token
from bfinfra.kinds.cluster.gpu_operator.conflicts import BELOW, ON_SUPERVISORS, default_level
from bfinfra.kinds.cluster.gpu_operator.policy import with_settings
from bfinfra.kinds.cluster.gpu_operator.rights import of_spec
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.gpu_operator.state import LAYOUT, NOTE, PROGRESS, WRITTEN, GpuState, is_license
from bfinfra.kinds.cluster.gpu_operator.steps import (
    STEPS,
    AwaitDivision,
    AwaitNoOperands,
    AwaitPods,
    AwaitSlice,
    Cordon,
    Divide,
    Evict,
    LeaveCordoned,
    RestartDriver,
    RestartPlugin,
    TryAgain,
    Uncordon,
)
from bfinfra.kinds.cluster.gpu_operator.survey import surveyed
from bfinfra.kinds.cluster.manifests.source import FromFilesOrChart, documents_of
from bfinfra.kinds.cluster_locator import Cluster
from bfinfra.model import compare
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Busy, NotYet, Refusal
from bfinfra.model.kind import Report
from bfinfra.model.order import Specs
from bfinfra.model.readiness import Readiness
from bfinfra.model.refs import Key
from bfinfra.model.rights import Right, Use, may
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

CLAIMS = ("resource.k8s.io/v1", "resource.k8s.io/v1/DeviceClass")
ENFORCED = "pod-security.kubernetes.io/enforce"


class GpuOperator(FromFilesOrChart[Spec]):
    """NVIDIA's GPU operator."""

    name = "gpu_operator"
    document = Document.CONSOLIDATED
    undescribed = "its objects come from a chart, and don't tell which"
    step_types = STEPS
    resource_privileges = (*FromFilesOrChart.resource_privileges, may("get", "namespaces", "record"))

    @staticmethod
    def render(
        name: str, spec: Spec, capabilities: Capabilities, namespace: str, of: Namespaced
    ) -> Rendering:
        """The objects of its chart or files, with its settings. Raises SecretMissing."""
        found = documents_of(name, spec, _with_claims(spec, capabilities), namespace)
        text = spec.license.token.reveal() if spec.license else ""
        return rendering(with_settings(found, spec, text), namespace, (spec.skip_hooks, spec.run_hooks), of)

    def _check(
        self, spec: Spec, client: ClusterClient | None, needs: Mapping[Key, ResolvedRef], namespace: str
    ) -> None:
        if spec.license and (why := token.wrong(spec.license.token.reveal(), datetime.now(UTC))):
            raise Refusal(
                why,
                field="license.token",
                why="without a license a vGPU slows down",
                next="get the client configuration token from NVIDIA's license portal",
            )
        if client is None:
            return
        if spec.allocate == "dra" and "v1" not in client.versions("resource.k8s.io"):
            raise Refusal(
                "resource claims need the API resource.k8s.io/v1, which the cluster does not serve",
                field="allocate",
                next="write allocate: device_plugin, or upgrade the cluster to Kubernetes 1.34",
            )
        own = needs.get(Key("namespace", spec.namespace))
        if own is None or not own.spec:
            _check_level(client, spec, needs, namespace)

    @classmethod
    def steps(cls, name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """The steps of its objects, then those at its nodes, one after the other."""
        found = super().steps(name, spec, state, context)
        if not isinstance(state, GpuState) or compare.adopting(state.mark):
            return found
        if spec is None:
            return tuple(decide.removal(found, state))
        result = (context.facts or {}).get(name)
        if not isinstance(result, Rendering):
            return found
        return tuple(decide.with_nodes(found, spec, state, result, (name, context.mark)))

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: Mapping[str, object] | None) -> Iterator[Conflict]:
        """Warnings: drivers with an earlier license token, nodes that are not there, and GPUs that can't be
        claimed.
        """
        for key, spec in wanted.items():
            state = states.get(key)
            if key.kind == GpuOperator.name and isinstance(state, GpuState):
                result = (facts or {}).get(key.name)
                known = result if isinstance(result, Rendering) else None
                yield from drivers.left(key, spec, state, known)
                yield from layouts.unknown_nodes(key, spec, state)
                yield from readiness.without_slices(key, spec, state)

    @classmethod
    def own_rights(cls, name: str, spec: Spec) -> Iterable[tuple[Use, Right]]:
        """Also those at nodes and pods."""
        return (*super().own_rights(name, spec), *of_spec(spec))

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the operator says so, and each node with GPUs offers them."""
        if not isinstance(state, GpuState):
            return super().ready(spec, state)
        at_node = layouts.readiness(spec, state) or (spec and readiness.between_restarts(spec, state))
        return at_node or readiness.of_operator(spec, state, super().ready(spec, state))

    def run(self, step: Step, report: Report) -> None:
        """Runs one step."""
        match step:
            case AwaitPods() | AwaitDivision() | AwaitSlice() | AwaitNoOperands():
                return  # the engine waits
            case Evict(home=home):
                _evict(self._clusters.at(home), step)
            case TryAgain(home=home) | RestartPlugin(home=home):
                self._clusters.at(home).patch("v1", "Node", step.node, _patch(step))
                self._clusters.at(home).delete("v1", "Pod", step.pod, step.namespace)
            case RestartDriver(home=home):
                self._clusters.at(home).delete("v1", "Pod", step.pod, step.namespace)
            case Cordon(home=home) | Divide(home=home) | Uncordon(home=home) | LeaveCordoned(home=home):
                self._clusters.at(home).patch("v1", "Node", step.node, _patch(step))
            case _:
                super().run(step, report)

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> dict[str, State]:
        found = super()._read(cluster, wanted, needs, include_unlisted=include_unlisted)
        return {
            name: surveyed(cluster.client, state, wanted.get(name), f"{self._site} {self.name}/{name}")
            for name, state in found.items()
        }

    def _manifest(self, step: Objects, each: Id) -> Object:
        """The license's Secret notes when its token was replaced: a driver that started before holds the
        earlier one.
        """
        found = super()._manifest(step, each)
        of_update = isinstance(step, Update) and not step.uids
        if is_license(each) and of_update and isinstance(step.home, Endpoint):
            client = self._clusters.at(step.home)
            live = client.get("v1", "Secret", each.name, each.namespace) or {}
            at = notes(live).get(WRITTEN)
            if live.get("data") != found.get("data"):
                now = client.now() or datetime.now(UTC)
                at = now.isoformat()
            if at:
                found["metadata"]["annotations"][WRITTEN] = at
        return found


def _with_claims(spec: Spec, capabilities: Capabilities) -> Capabilities:
    """A cluster that isn't there yet, with the API of claims: NVIDIA's chart asks for it, and a cluster that
    doesn't serve it is refused.
    """
    if spec.allocate != "dra" or capabilities.version:
        return capabilities
    return Capabilities(apis=(*capabilities.apis, *CLAIMS))


def _check_level(client: ClusterClient, spec: Spec, needs: Mapping[Key, ResolvedRef], namespace: str) -> None:
    """Raises Refusal for an existing namespace whose Pod Security refuses the operator's pods."""
    space = client.get("v1", "Namespace", namespace)
    level = ((space or {}).get("metadata", {}).get("labels") or {}).get(ENFORCED)
    home = next((each for key, each in needs.items() if key.name == spec.cluster and _own(each)), None)
    default = default_level(home.spec) if home is not None else "privileged"
    if space is not None and (level or default) in BELOW:
        raise Refusal(
            f"the namespace {namespace} refuses its pods, which need the host",
            field="namespace",
            why=f"its Pod Security is {level}"
            if level
            else f"it has no level of its own, and {home.key if home else 'its cluster'} enforces {default}",
            next=f"label it {ENFORCED}=privileged, or write it as a namespace of the site",
        )


def _own(need: ResolvedRef) -> bool:
    """Return whether it is a cluster on a supervisor that the site makes."""
    return need.key.kind in ON_SUPERVISORS and need.spec is not None


def _patch(step: Step) -> Object:
    """The change of a node."""
    match step:
        case Cordon(note=note, version=version):
            metadata = {"annotations": {NOTE: note}, "resourceVersion": version}
            return {"metadata": metadata, "spec": {"unschedulable": True}}
        case Divide(layout=layout, note=note):
            # the manager says how it goes of this layout: what it said of the one before is removed
            return {"metadata": {"annotations": {NOTE: note}, "labels": {LAYOUT: layout, PROGRESS: None}}}
        case TryAgain(note=note):
            return {"metadata": {"annotations": {NOTE: note}, "labels": {PROGRESS: None}}}
        case RestartPlugin(note=note):
            return {"metadata": {"annotations": {NOTE: note}}}
        case Uncordon():
            return {"metadata": {"annotations": {NOTE: None}}, "spec": {"unschedulable": None}}
        case LeaveCordoned():
            return {"metadata": {"annotations": {NOTE: None}}}
    raise AssertionError(step)


def _evict(client: ClusterClient, step: Evict) -> None:
    """Evict each pod. Raises NotYet if a disruption budget keeps one: it is tried again for a while."""
    kept: NotYet | None = None
    for user in step.users:
        try:
            client.evict(user.name, user.namespace)
        except Busy as busy:
            kept = kept or NotYet(
                f"pod {user} can't be evicted from {step.node}",
                why=busy.problems[0].why,
                next="wait until its disruption budget allows it, or delete the pod, and apply again",
                retry_after=busy.retry_after,
            )
    if kept is not None:
        raise kept
