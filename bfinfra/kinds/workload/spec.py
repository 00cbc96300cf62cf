"""What a user writes for a workload."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from bfinfra.kinds._homes import CLUSTERS, DnsLabel
from bfinfra.kinds.workload import manifests
from bfinfra.model import kind
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.refs import Ref
from bfinfra.model.sources import LocalFile
from bfinfra.model.units import Bytes


class Spec(kind.Spec):
    """What a user writes for one workload."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    cluster: Annotated[str, Ref(*CLUSTERS)]
    """Cluster, or supervisor namespace, that it runs in."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] | None = None
    """Namespace; empty = default, or the supervisor namespace itself."""
    manifest: LocalFile
    """File with the Pod, Job and PersistentVolumeClaim manifests, as kubectl reads them."""
    gpus: Annotated[int, Field(ge=1)] | None = None
    """Remote GPUs for the first container of each Pod and Job."""
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of each GPU's memory."""
    gpu_memory: Bytes | None = None
    """Memory on each GPU, instead of a share of it; with by: flexdirect only."""
    by: Literal["env", "command", "flexdirect"] = "env"
    """env: as NUM_GPUS and PARTIAL_GPU, for images that start Bitfusion themselves; command: `bitfusion run` before the command.

    flexdirect: `flexdirect run` before the command or args, and the node's /etc/bitfusionio mounted.
    """
    token_secret: Annotated[str, Ref("token_secret")] | None = None
    """Token to mount at /etc/bitfusion, for images without one of their own."""
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    """Account to pull the image with."""
    run: Literal["once", "again"] = "once"
    """once: what ran and was cleaned up is not run again until the manifest changes; again: it is."""
    wait: Literal["ready", "finished"] = "ready"
    """What apply waits for."""

    @field_validator("manifest")
    @classmethod
    def _readable(cls, file: LocalFile) -> LocalFile:
        manifests.read(file.path)
        return file

    @model_validator(mode="after")
    def _gpus(self) -> Spec:
        if self.by != "env" and self.gpus is None:
            raise ValueError(f"by: {self.by} needs gpus")
        if self.gpu_memory is not None and (self.by != "flexdirect" or self.fraction is not None):
            raise ValueError("gpu_memory: goes with by: flexdirect, and without fraction")
        if self.fraction is not None and self.gpus is None:
            raise ValueError("fraction: needs gpus")
        return self
