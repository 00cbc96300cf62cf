"""The rights of a GPU operator at nodes and pods, by what its spec asks for."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.model.rights import Right, Use, may


def of_spec(spec: Spec) -> Iterator[tuple[Use, Right]]:
    """Yield the rights of each use."""
    for use in Use:
        yield use, may("list", "nodes", "objects")
        yield use, may("list", "pods daemonsets.apps", "record")
        if spec.allocate == "dra":
            yield use, may("list", "resourceslices.resource.k8s.io", "objects")
        if spec.mig_layouts:
            yield use, may("list", "pods", "objects")
            if spec.allocate == "dra":
                yield use, may("list", "resourceclaims.resource.k8s.io", "objects")
    if spec.mig_layouts:
        for use in (Use.APPLY, Use.DESTROY):
            yield use, may("patch", "nodes", "objects")
        if spec.allocate == "dra":
            yield Use.APPLY, may("delete", "pods", "objects")
    if spec.drain == "if_needed":
        yield Use.APPLY, may("create", "pods/eviction", "objects")
    if spec.mig_layouts or spec.restart_drivers == "if_needed":
        yield Use.APPLY, may("delete", "pods", "record")
