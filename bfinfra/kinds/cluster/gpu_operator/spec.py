"""The desired state of NVIDIA's GPU operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import NVIDIA, allocatable
from bfinfra.kinds.cluster.gpu_operator import conflicts
from bfinfra.kinds.cluster.manifests import spec as manifests
from bfinfra.kinds.cluster_locator import DnsLabel
from bfinfra.model import conflict
from bfinfra.model.choice import one_of
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


class Layout(Part):
    """How the GPUs of some nodes are divided (MIG)."""

    layout: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]
    """Its name in the MIG manager's configuration, such as all-1g.10gb, or all-disabled for whole GPUs."""
    nodes: tuple[Text, ...] = ()
    """Names of nodes."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of nodes: those that have all of them."""

    @model_validator(mode="after")
    def _one(self) -> Layout:
        one_of(nodes=self.nodes or None, labels=self.labels or None)
        return self


class Spec(manifests.Spec):
    """The desired state of one operator; a cluster has at most one."""

    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] = "gpu-operator"
    """Namespace, of this site or existing. Its Pod Security must be privileged."""
    driver: Driver | None = None
    """The driver; empty = as the chart or the rendering has it. It is set in the ClusterPolicy, or in the
    NVIDIADriver to which that leaves the driver.
    """
    license: License | None = None
    """The license of vGPUs, as a Secret in the namespace; named where the driver is set."""
    mig: Literal["single", "mixed"] | None = None
    """How parts of GPUs (MIG) are offered; empty = as rendered. Not with vGPUs."""
    mig_layouts: tuple[Layout, ...] = ()
    """How the GPUs of nodes are divided; of a node, the first entry that fits. Each node is cordoned, and
    divided once no pod uses its GPUs, one after the other. Other nodes stay as they are. Not with vGPUs.
    """
    drain: Literal["never", "if_needed"] = "never"
    """Whether pods are evicted that use the GPUs of a node that is divided; never: apply waits until they are
    gone.
    """
    restart_drivers: Literal["never", "if_needed"] = "never"
    """Whether drivers are restarted, node after node, that hold an earlier license token, or that are of an
    earlier version and the operator leaves; never: they are listed. A restart takes the GPUs from the pods of
    its node.
    """
    allocate: Literal["device_plugin", "dra"] = "device_plugin"
    """How pods get GPUs: device_plugin, as nvidia.com/gpu; dra, by resource claims, without the plug-in. A
    rendering with a GPUCluster in place of the ClusterPolicy takes dra alone.
    """
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
        for field in ("mig", "mig_layouts"):
            if getattr(self, field) and self.license:
                advice = f"remove {field}"
                raise FieldError("vGPUs, which need a license, are divided on their host", field, advice)
        if self.drain == "if_needed" and not self.mig_layouts:
            raise FieldError("it goes with mig_layouts", "drain")
        return self

    def layout_of(self, node: str, labels: Mapping[str, str]) -> str:
        """The layout that a node's GPUs shall have; "" for as they are."""
        for each in self.mig_layouts:
            if node in each.nodes or (each.labels and each.labels.items() <= labels.items()):
                return each.layout
        return ""
