"""The desired state of NVIDIA's device plug-in of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import (
    LICENSE,
    NVIDIA,
    TOOLKIT,
    allocatable,
    image,
    namespace,
    on_nodes,
    space,
)
from bfinfra.kinds.cluster.base.pods import check_toleration
from bfinfra.kinds.cluster_locator import WHOLE, DnsLabel, cluster_key
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Conflict, Spot, Taken
from bfinfra.model.errors import Problem
from bfinfra.model.names import LABEL_VALUE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part

REPOSITORY, NAME, TAG = "nvcr.io/nvidia", "k8s-device-plugin", "v0.20.0"
LabelValue = Annotated[str, StringConstraints(pattern=rf"^({LABEL_VALUE})?$")]
Path = Annotated[str, StringConstraints(pattern=r"^/[^\s:]*$")]


class Toleration(Part):
    """A taint that its pods tolerate besides `nvidia.com/gpu`."""

    key: str = ""
    """The taint's key; empty = every taint, which needs operator: Exists."""
    operator: Literal["Equal", "Exists"] = "Exists"
    """Exists: with any value."""
    value: str = ""
    """The taint's value, for Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect; empty = any."""

    @model_validator(mode="after")
    def _fits(self) -> Toleration:
        check_toleration(self.operator, self.key, self.value)
        return self


class Spec(resource.Spec):
    """The desired state of one plug-in; a cluster has at most one."""

    cluster: Annotated[str, Ref(*WHOLE)]
    """Cluster whose nodes have the GPUs, a driver for them, and NVIDIA's container toolkit."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] = "kube-system"
    """Namespace that it runs in, of this site or existing."""
    registry: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][\w./:-]*[\w]$", max_length=400)] = (
        REPOSITORY
    )
    """Registry and folder of its image. If nodes can't reach NVIDIA's registry, name the copy in your own."""
    version: Annotated[str, StringConstraints(pattern=r"^(v[\w.-]{1,127}|sha256:[0-9a-f]{64})$")] = TAG
    """Tag of its image, or its digest: sha256:…"""
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    """Account to pull the image with."""
    node_selector: dict[str, LabelValue] = Field(default_factory=dict)
    """Labels of the nodes with GPUs; empty = all nodes whose taints its pods tolerate. Then each of them must
    have GPUs, unless fail_on_init_error is false.
    """
    control_plane: bool = False
    """Run on control plane nodes, too, by tolerating their taints."""
    tolerations: tuple[Toleration, ...] = ()
    """Other taints that its pods tolerate."""
    fail_on_init_error: bool = True
    """On a node without driver or GPU its pod ends, and restarts until they are there. False: it keeps
    running and offers nothing until somebody restarts it.
    """
    mig_strategy: Literal["none", "single", "mixed"] = "none"
    """How MIG devices are offered. single: as nvidia.com/gpu; mixed: each size under its own name, such as
    nvidia.com/mig-1g.5gb.
    """
    device_list_strategy: Literal["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"] = "envvar"
    """How the container runtime learns which devices a container gets."""
    device_id_strategy: Literal["uuid", "index"] = "uuid"
    """How devices are named to the container runtime."""
    pass_device_specs: bool = False
    """Pass device nodes to the kubelet, as its static CPU manager needs; the pods are privileged then."""
    time_slicing: Annotated[int, Field(ge=2, le=1000)] | None = None
    """How many pods share a GPU by time-slicing, without a limit on memory: each GPU is offered so many
    times.
    """
    runtime_class: DnsLabel | None = None
    """RuntimeClass of its pods, if NVIDIA's container runtime isn't the nodes' default."""
    priority_class: str = "system-node-critical"
    """PriorityClass of its pods."""
    kubelet_folder: Path = "/var/lib/kubelet"
    """The kubelet's folder on the nodes."""

    @property
    def image(self) -> str:
        """The image's full name."""
        return f"{self.registry}/{NAME}{'@' if self.version.startswith('sha256:') else ':'}{self.version}"

    def takes(self, name: str) -> Iterator[Taken]:
        """Its cluster, as two plug-ins would offer the same GPUs."""
        yield conflict.thing("cluster", "NVIDIA's device plug-in", "cluster", self.cluster)

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """Nodes whose container runtime gives its pods no GPU."""
        for key, spec in mine.items():
            home = cluster_key(spec.cluster, site, ("kubeadm_cluster",))
            hosts = frozenset(site[home].hosts) if home and spec.runtime_class is None else frozenset()
            for other, toolkit in site.items():
                if (
                    other.kind == "nvidia_container_toolkit"
                    and not toolkit.default
                    and (on := sorted(hosts & {*toolkit.hosts}))
                ):
                    yield Conflict(
                        Spot(key, "cluster"),
                        f"its pods see no GPU on {', '.join(on)}",
                        (Spot(other, "default"),),
                        why="NVIDIA's container runtime is not the default one there",
                        next=(
                            "write runtime_class: with the name of a RuntimeClass for it, or default: true "
                            "there"
                        ),
                    )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The nodes' own GPUs, for pods."""
        yield allocatable(NVIDIA, self.cluster, site)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its namespace and image; on its nodes the container toolkit, and the license without which GPUs do
        nothing.
        """
        yield namespace(space(self.namespace, self.cluster, site), self.cluster, site)
        yield image(self.image)
        yield from on_nodes(TOOLKIT, self.cluster, site)
        yield from on_nodes(LICENSE, self.cluster, site)

    def warnings(self) -> Iterable[tuple[str, Problem]]:
        """A plug-in that doesn't notice a driver or toolkit that is installed later."""
        if not self.fail_on_init_error:
            yield (
                "fail_on_init_error",
                Problem(
                    (
                        "a pod that starts before the node's driver or container toolkit is there offers no "
                        "GPU, and isn't started again"
                    ),
                    next="leave fail_on_init_error out, and select the nodes with GPUs in node_selector",
                ),
            )
