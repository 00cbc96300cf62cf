"""The kind manifests."""

from __future__ import annotations

from bfinfra.backends.helm import Capabilities
from bfinfra.kinds.cluster.base.rendered.rendering import Namespaced, Rendering, rendering
from bfinfra.kinds.cluster.manifests.source import FromFilesOrChart, documents_of
from bfinfra.kinds.cluster.manifests.spec import Spec
from bfinfra.model.document import Document

__all__ = ["Manifests", "Spec"]


class Manifests(FromFilesOrChart[Spec]):
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
