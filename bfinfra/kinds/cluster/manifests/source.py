"""The files or the chart that a spec names, as objects."""

from __future__ import annotations

from pathlib import Path

from bfinfra.backends.helm import Capabilities, OciChart, kept
from bfinfra.kinds.cluster.base.rendered.charts import asked, of_chart, values, versioned
from bfinfra.kinds.cluster.base.rendered.objects import Manifest
from bfinfra.kinds.cluster.base.rendered.rendering import of_files
from bfinfra.kinds.cluster.manifests.spec import Chart, Spec
from bfinfra.model.awaited import Absent, away


def documents_of(name: str, spec: Spec, capabilities: Capabilities, namespace: str) -> tuple[Manifest, ...]:
    """The objects in its files, or in its rendered chart. Raises ValueError."""
    if spec.chart is None:
        return of_files(file.path for file in spec.files)
    chart = archive(spec.chart)
    given = values(*chart, (file.path for file in spec.values_files), spec.values)
    return of_chart(*chart, (spec.release or name, namespace, given), capabilities)


def missing_of(spec: Spec) -> Absent | None:
    """The first of its files that is not there."""
    files = {f"files.{index}": file for index, file in enumerate(spec.files)}
    files |= {f"values_files.{index}": file for index, file in enumerate(spec.values_files)}
    found = away(
        spec, {**files, **({"chart.file": spec.chart.file} if spec.chart and spec.chart.file else {})}
    )
    return found[1] if found else None


def remote_of(spec: Spec) -> tuple[OciChart, ...]:
    """Its chart, if a registry has it."""
    address = spec.chart.address if spec.chart else None
    return (address,) if address else ()


def source_of(spec: Spec) -> str:
    """The field that names what is rendered."""
    return "chart" if spec.chart else "files"


def asks_of(spec: Spec) -> tuple[str, ...] | None:
    """The APIs that the chart's templates ask for; None without a chart. Raises ValueError."""
    return asked(*archive(spec.chart)) if spec.chart else None


def archive(chart: Chart) -> tuple[Path, str]:
    """The chart's archive and its digest. Raises ValueError, also for a chart of another version."""
    found = (chart.file.path, chart.digest) if chart.file else kept(chart.digest)
    if chart.version is not None and (version := versioned(*found)) != chart.version:
        raise ValueError(
            f"the chart with this digest is version {version}, and the site names {chart.version}; look at "
            "what changed, and write the digest of the version that you want"
        )
    return found
