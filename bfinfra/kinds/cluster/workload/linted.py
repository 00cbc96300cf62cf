"""Checks manifests that ask for Bitfusion's GPUs themselves, by the rules of their cluster's device plug-in.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.kinds.cluster.workload.request import Request
from bfinfra.model import foreign
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Place
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec as PlugIn

MB = 1_000_000
WORDS = (b"bitfusion.io/", b"auto-management/", b"bitfusion-client/")


def conflicts(mine: Mapping[Key, Request], site: Specs) -> Iterator[Conflict]:
    """Manifests that the webhook refuses or ignores, and warnings. Nothing if bfinfra writes the requests."""
    plug_ins = {other.cluster: each for each, other in site.items() if each.kind == "bitfusion_device_plugin"}
    for key, spec in mine.items():
        if spec.by != "plugin" and (plug_in := plug_ins.get(spec.cluster)) is not None:
            yield from _of(key, spec, plug_in, site[plug_in])


def _of(key: Key, spec: Request, plug_in: Key, there: PlugIn) -> Iterator[Conflict]:
    try:
        with spec.manifest.path.open("rb") as stream:
            data = stream.read(foreign.LARGEST + 1)
    except OSError:
        return  # other checks report that it can't be read
    if not any(word in data for word in WORDS):
        return
    from bfinfra.lint import Asked, Installed, lint_pods

    installed = Installed(there.packages, (there.namespace, there.plugin_namespace), there.namespaces)
    asked = Asked(there.version, there.total_gpu_memory // MB, spec.namespace or "default", installed)
    for remark in lint_pods(spec.manifest.path, data.decode(errors="replace"), asked):
        problem = remark.problem
        yield Conflict(
            Spot(key, "manifest"),
            problem.what,
            (Spot(plug_in),),
            problem.why,
            problem.next,
            stops=remark.stops,
            inside=problem.where if isinstance(problem.where, Place) else None,
        )
