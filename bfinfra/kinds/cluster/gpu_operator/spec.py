"""The desired state of NVIDIA's GPU operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import StringConstraints, model_validator

from bfinfra.kinds.capabilities import NVIDIA, allocatable
from bfinfra.kinds.cluster.gpu_operator import conflicts
from bfinfra.kinds.cluster.manifests import spec as manifests
from bfinfra.kinds.cluster_locator import DnsLabel
from bfinfra.model import conflict
from bfinfra.model.conflict import Conflict, Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret

Text = Annotated[str, StringConstraints(min_length=1)]


class Driver(Part):
    """The driver that the operator installs on nodes."""

    repository: Text | None = None
    """Registry and path of the image, such as that of your own vGPU guest driver; empty = the chart's."""
    image: Text | None = None
    """Name of the image; empty = the chart's."""
    version: Text | None = None
    """Version of the driver, such as 580.95.05; empty = the chart's."""
    credential: DnsLabel | None = None
    """Secret in the namespace that the image is pulled with, such as one of a `registry_credential`."""


class License(Part):
    """The license of vGPUs."""

    token: Secret
    """The client configuration token that NVIDIA's license portal issues."""


class Spec(manifests.Spec):
    """The desired state of one operator; a cluster has at most one."""

    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] = "gpu-operator"
    """Namespace, of this site or existing. Its Pod Security must be privileged."""
    driver: Driver | None = None
    """The driver; empty = as the chart or the rendering has it."""
    license: License | None = None
    """The license of vGPUs, as a Secret in the namespace."""
    mig: Literal["single", "mixed"] | None = None
    """How parts of GPUs (MIG) are offered; empty = as rendered. Not with vGPUs."""
    allocate: Literal["device_plugin", "dra"] = "device_plugin"
    """How pods get GPUs: device_plugin, as nvidia.com/gpu; dra, by resource claims, without the plug-in."""
    metrics: bool | None = None
    """Whether the metrics exporter runs; empty = as rendered."""

    def takes(self, name: str) -> Iterator[Taken]:
        """Its cluster, as two would offer the same GPUs."""
        yield conflict.thing("cluster", "NVIDIA's device plug-in", "cluster", self.cluster)

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The nodes' GPUs, for pods."""
        yield allocatable(NVIDIA, self.cluster, site)

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """Those with its namespace and its cluster."""
        return conflicts.found(mine, site)

    @model_validator(mode="after")
    def _no_parts_of_vgpus(self) -> Spec:
        if self.mig and self.license:
            raise FieldError("vGPUs, which need a license, are divided on their host", "mig", "remove mig")
        return self
