"""What a user writes for an MPI job."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bfinfra.kinds._homes import WHOLE, DnsLabel
from bfinfra.kinds.mpi_operator.spec import Version
from bfinfra.model import kind
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.refs import Ref
from bfinfra.model.units import Seconds

Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
LONGEST = 51  # letters of a job's name: its pods are `NAME-launcher-xxxxx` and `NAME-worker-123`, labels at most 63


class Spec(kind.Spec):
    """What a user writes for one job."""

    name_pattern = rf"(?=.{{1,{LONGEST}}}$){DNS_LABEL}"
    name_rule = DNS_LABEL_RULE.replace("63", str(LONGEST))

    cluster: Annotated[str, Ref(*WHOLE)]
    """Cluster that it runs in."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] | None = None
    """Namespace; empty = default."""
    operator: Annotated[str, Ref("mpi_operator")] | None = None
    """The operator that this site makes; empty where the cluster has one anyway."""
    api: Version | None = None
    """Version of MPIJob; empty = the operator's, or v2beta1."""
    image: str
    """Image of launcher and workers; with v2beta1 it must hold an SSH server."""
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """What each process runs: what stands after mpirun and its options."""
    workers: Annotated[int, Field(ge=1, le=1000)]
    """Worker pods."""
    slots: Annotated[int, Field(ge=1)] = 1
    """Processes on each worker."""
    gpus: Annotated[int, Field(ge=0)] = 1
    """GPUs of each worker."""
    gpu_resource: str = "nvidia.com/gpu"
    """The name under which nodes offer them."""
    transport: Literal["roce", "tcp"]
    """roce: NCCL over RDMA, and privileged workers with the devices mounted; tcp: neither."""
    devices: Annotated[str, StringConstraints(pattern="^/")] = "/dev/infiniband"
    """Folder of the nodes' RDMA devices."""
    environment: dict[Variable, str] = Field(default_factory=dict)
    """Variables for all processes, over those that transport sets."""
    mpirun: tuple[str, ...] = ("-bind-to", "none", "-map-by", "slot", "-mca", "pml", "ob1", "-mca", "btl", "^openib")
    """Options of mpirun besides `--allow-run-as-root`, `-np` and the variables."""
    clean_pods: Literal["none", "running", "all"] = "running"
    """Which pods go once the job has ended; with `all` its log goes too, and no result can be read from it."""
    retries: Annotated[int, Field(ge=0)] | None = None
    """How often the launcher is started again; empty = as the operator does (6)."""
    deadline: Seconds | None = None
    """How long it may run."""
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    """Account to pull the image with."""
    wait: Literal["running", "finished"] = "finished"
    """What apply waits for."""
