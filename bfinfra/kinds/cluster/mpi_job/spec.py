"""The desired state of an MPI job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bfinfra.kinds.capabilities import NVIDIA, gpus, image, mpi, namespace, space
from bfinfra.kinds.class_gpus import told_by_file
from bfinfra.kinds.cluster.mpi_job.nodes import Asked, not_placed
from bfinfra.kinds.cluster.mpi_operator.spec import Version
from bfinfra.kinds.cluster_locator import WHOLE, DnsLabel
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.units import Seconds

Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
LONGEST = (
    # longest name of a job: its pods are `NAME-launcher-xxxxx` and `NAME-worker-123`, and labels have at most
    # 63 characters
    51
)


class Spec(resource.Spec):
    """The desired state of one job."""

    name_pattern = rf"(?=.{{1,{LONGEST}}}$){DNS_LABEL}"
    name_rule = DNS_LABEL_RULE.replace("63", str(LONGEST))

    cluster: Annotated[str, Ref(*WHOLE)]
    """Cluster that it runs in."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] | None = None
    """Namespace; empty = default."""
    operator: Annotated[str, Ref("mpi_operator")] | None = None
    """The operator that this site makes; empty if the cluster has one already."""
    api: Version | None = None
    """Version of MPIJob; empty = the operator's, or v2beta1."""
    image: str
    """Image of launcher and workers. For v2beta1 it must contain an SSH server."""
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """The command of each process: what follows mpirun and its options."""
    workers: Annotated[int, Field(ge=1, le=1000)]
    """Number of worker pods."""
    slots: Annotated[int, Field(ge=1)] = 1
    """Processes on each worker."""
    gpus: Annotated[int, Field(ge=0)] = 1
    """GPUs of each worker."""
    gpu_resource: str = NVIDIA
    """The nodes' resource name for GPUs."""
    transport: Literal["roce", "tcp"]
    """roce: NCCL over RDMA, in privileged workers that mount the devices; tcp: neither."""
    devices: Annotated[str, StringConstraints(pattern="^/")] = "/dev/infiniband"
    """Folder of the nodes' RDMA devices."""
    environment: dict[Variable, str] = Field(default_factory=dict)
    """Variables for all processes. They override those of transport."""
    mpirun: tuple[str, ...] = (
        "-bind-to",
        "none",
        "-map-by",
        "slot",
        "-mca",
        "pml",
        "ob1",
        "-mca",
        "btl",
        "^openib",
    )
    """Options of mpirun besides `--allow-run-as-root`, `-np` and the variables."""
    clean_pods: Literal["none", "running", "all"] = "running"
    """Which pods are deleted when the job has ended. With `all` its log is lost, and so is its result."""
    retries: Annotated[int, Field(ge=0)] | None = None
    """How often the launcher is restarted; empty = the operator's default (6)."""
    deadline: Seconds | None = None
    """Longest run time."""
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    """Account to pull the image with."""
    wait: Literal["running", "finished"] = "finished"
    """What apply waits for."""

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """Workers that fit on no node of the site: the job would wait without end."""
        for key, spec in mine.items():
            if isinstance(spec, Spec):
                yield from not_placed(key, spec.asked, site, lambda name: told_by_file(name, site))

    @property
    def asked(self) -> Asked:
        """What its workers ask of the nodes."""
        return Asked(self.cluster, self.workers, self.gpus if self.gpu_resource == NVIDIA else 0)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its namespace and image, an operator, and GPUs for its workers."""
        yield namespace(space(self.namespace, self.cluster, site), self.cluster, site)
        yield image(self.image)
        if self.operator is None:
            yield mpi(self.cluster, site)
        if self.gpus:
            yield from gpus(self.gpu_resource, self.cluster, site)
