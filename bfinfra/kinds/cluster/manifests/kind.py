"""The kind manifests."""

from __future__ import annotations

from collections.abc import Sequence

from bfinfra.backends.helm import Capabilities, OciChart
from bfinfra.kinds.cluster.base.rendered.kind import RenderedObjects
from bfinfra.kinds.cluster.base.rendered.rendering import Namespaced, Rendering, rendering
from bfinfra.kinds.cluster.manifests.source import asks_of, documents_of, missing_of, remote_of, source_of
from bfinfra.kinds.cluster.manifests.spec import Spec
from bfinfra.model.awaited import Absent
from bfinfra.model.document import Document

__all__ = ["Manifests", "Spec"]


class Manifests(RenderedObjects[Spec]):
    """Kubernetes objects of any type, from files or a chart."""

    name = "manifests"
    document = Document.CONSOLIDATED
    undescribed = "a site names files or a chart, and a cluster has neither"

    @staticmethod
    def render(
        name: str, spec: Spec, capabilities: Capabilities, namespace: str, of: Namespaced
    ) -> Rendering:
        """The objects in its files, or in its rendered chart."""
        found = documents_of(name, spec, capabilities, namespace)
        return rendering(found, namespace, (spec.skip_hooks, spec.run_hooks), of)

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
