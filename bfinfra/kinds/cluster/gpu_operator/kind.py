"""The kind gpu_operator: manifests with the operator's settings, and what its GPUs need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bfinfra.backends.helm import Capabilities, OciChart
from bfinfra.backends.words import safe
from bfinfra.kinds.capabilities import NVIDIA
from bfinfra.kinds.cluster.base.rendered.kind import RenderedObjects
from bfinfra.kinds.cluster.base.rendered.rendering import Namespaced, Rendering, rendering
from bfinfra.kinds.cluster.base.rendered.state import State
from bfinfra.kinds.cluster.gpu_operator import token
from bfinfra.kinds.cluster.gpu_operator.conflicts import BELOW, ON_SUPERVISORS, default_level
from bfinfra.kinds.cluster.gpu_operator.policy import GROUP, KIND, with_settings
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.manifests.source import asks_of, documents_of, missing_of, remote_of, source_of
from bfinfra.model.awaited import Absent
from bfinfra.model.context import ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.readiness import READY, Readiness, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import may

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

ENFORCED = "pod-security.kubernetes.io/enforce"
PRESENT = "nvidia.com/gpu.present"
"""The operator's label on nodes with GPUs."""


class GpuOperator(RenderedObjects[Spec]):
    """NVIDIA's GPU operator."""

    name = "gpu_operator"
    document = Document.CONSOLIDATED
    undescribed = "its objects come from a chart, and don't tell which"
    resource_privileges = (
        *RenderedObjects.resource_privileges,
        may("get", "namespaces", "record"),
        may("list", "nodes", "objects"),
    )

    @staticmethod
    def render(
        name: str, spec: Spec, capabilities: Capabilities, namespace: str, of: Namespaced
    ) -> Rendering:
        """The objects of its chart or files, with its settings. Raises SecretMissing."""
        found = documents_of(name, spec, capabilities, namespace)
        text = spec.license.token.reveal() if spec.license else ""
        return rendering(with_settings(found, spec, text), namespace, (spec.skip_hooks, spec.run_hooks), of)

    @staticmethod
    def missing(spec: Spec) -> Absent | None:
        """The first of its files that is not there."""
        return missing_of(spec)

    @staticmethod
    def remote(spec: Spec) -> Sequence[OciChart]:
        """Its chart, if a registry has it."""
        return remote_of(spec)

    @staticmethod
    def source(spec: Spec) -> str:
        """Its files, or its chart."""
        return source_of(spec)

    @staticmethod
    def asks(spec: Spec) -> tuple[str, ...] | None:
        """Return the APIs that the chart's templates look for in a cluster."""
        return asks_of(spec)

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

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the ClusterPolicy is ready, and each node with GPUs advertises them."""
        found = super().ready(spec, state)
        if found != READY or spec is None or spec.wait != "ready":
            return found
        policy = next((t.manifest for each, t in state.things.items() if each.type == (GROUP, KIND)), None)
        if policy is None:
            return READY
        says = (policy.get("status") or {}).get("state")
        if says == "disabled":
            return failed("the operator ignores its ClusterPolicy, as there is another one")
        if says != "ready":
            return waiting(f"the operator says {safe(says or 'nothing yet', 40)}")
        if spec.allocate == "device_plugin":
            for node in self._clusters.at(state.home).list("v1", "Node", labels=f"{PRESENT}=true"):
                if not _offers(node):
                    return waiting(f"{node['metadata']['name']} offers no {NVIDIA} yet")
        return READY


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


def _offers(node: Mapping[str, object]) -> bool:
    status = node.get("status")
    offered = status.get("allocatable") if isinstance(status, Mapping) else None
    names = (NVIDIA, f"{NVIDIA}.shared", "nvidia.com/mig-")
    return any(
        str(name).startswith(names) and str(count) != "0" for name, count in dict(offered or {}).items()
    )
