"""The kind manifests."""

from __future__ import annotations

from bfinfra.backends.helm import Capabilities
from bfinfra.kinds.cluster.base.rendered.charts import asked, of_chart, values
from bfinfra.kinds.cluster.base.rendered.kind import RenderedObjects
from bfinfra.kinds.cluster.base.rendered.rendering import Namespaced, Rendering, of_files, rendering
from bfinfra.kinds.cluster.manifests.spec import Spec
from bfinfra.model.awaited import Absent, away
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
        if spec.chart is None:
            found = of_files(file.path for file in spec.files)
        else:
            chart = (spec.chart.file.path, spec.chart.digest)
            given = values(*chart, (file.path for file in spec.values_files), spec.values)
            found = of_chart(*chart, (spec.release or name, namespace, given), capabilities)
        return rendering(found, namespace, spec.skip_hooks, of)

    @staticmethod
    def missing(spec: Spec) -> Absent | None:
        """The first of its files that is not there."""
        files = {f"files.{index}": file for index, file in enumerate(spec.files)}
        files |= {f"values_files.{index}": file for index, file in enumerate(spec.values_files)}
        found = away(spec, {**files, **({"chart.file": spec.chart.file} if spec.chart else {})})
        return found[1] if found else None

    @staticmethod
    def source(spec: Spec) -> str:
        """Its files, or its chart."""
        return "chart" if spec.chart else "files"

    @staticmethod
    def asks(spec: Spec) -> tuple[str, ...] | None:
        """What the chart's templates ask of a cluster."""
        return asked(spec.chart.file.path, spec.chart.digest) if spec.chart else None
