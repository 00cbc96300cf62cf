"""The files or the chart that a spec names, as objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from bfinfra.backends.helm import Capabilities, OciChart, kept
from bfinfra.kinds.cluster.base.rendered.charts import asked, of_chart, values, versioned
from bfinfra.kinds.cluster.base.rendered.kind import RenderedObjects
from bfinfra.kinds.cluster.base.rendered.objects import Manifest
from bfinfra.kinds.cluster.base.rendered.rendering import of_files
from bfinfra.kinds.cluster.manifests.spec import Chart, Spec
from bfinfra.model.awaited import Absent, away

S = TypeVar("S", bound=Spec)


class FromFilesOrChart(RenderedObjects[S]):
    """A kind whose objects come from files, or from a chart."""

    @staticmethod
    def missing(spec: Spec) -> Absent | None:
        """The first of its files that is not there."""
        files = {f"files.{index}": file for index, file in enumerate(spec.files)}
        files |= {f"values_files.{index}": file for index, file in enumerate(spec.values_files)}
        chart = {"chart.file": spec.chart.file} if spec.chart and spec.chart.file else {}
        found = away(spec, {**files, **chart})
        return found[1] if found else None

    @staticmethod
    def remote(spec: Spec) -> Sequence[OciChart]:
        """Its chart, if a registry has it."""
        address = spec.chart.address if spec.chart else None
        return (address,) if address else ()

    @staticmethod
    def source(spec: Spec) -> str:
        """The field that names what is rendered."""
        return "chart" if spec.chart else "files"

    @staticmethod
    def asks(spec: Spec) -> tuple[str, ...] | None:
        """The APIs that the chart's templates look for in a cluster; None without a chart. Raises
        ValueError.
        """
        return asked(*archive(spec.chart)) if spec.chart else None


def documents_of(name: str, spec: Spec, capabilities: Capabilities, namespace: str) -> tuple[Manifest, ...]:
    """The objects in its files, or in its rendered chart. Raises ValueError."""
    if spec.chart is None:
        return of_files(file.path for file in spec.files)
    chart = archive(spec.chart)
    given = values(*chart, (file.path for file in spec.values_files), spec.values)
    return of_chart(*chart, (spec.release or name, namespace, given), capabilities)


def archive(chart: Chart) -> tuple[Path, str]:
    """The chart's archive and its digest. Raises ValueError, also for a chart of another version."""
    found = (chart.file.path, chart.digest) if chart.file else kept(chart.digest)
    if chart.version is not None and (version := versioned(*found)) != chart.version:
        raise ValueError(
            f"the chart with this digest is version {version}, and the site names {chart.version}; look at "
            "what changed, and write the digest of the version that you want"
        )
    return found
