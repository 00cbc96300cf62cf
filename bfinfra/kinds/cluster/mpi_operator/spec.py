"""The desired state of an MPI operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import model_validator

from bfinfra.kinds.capabilities import image, mpi, namespace, space
from bfinfra.kinds.cluster_locator import WHOLE, DnsLabel
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref

Version = Literal["v1alpha2", "v2beta1"]
IMAGES = {"v1alpha2": "mpioperator/mpi-operator:v0.2.3", "v2beta1": "mpioperator/mpi-operator:0.8.0"}
DELIVERY = "mpioperator/kubectl-delivery:latest"


class Spec(resource.Spec):
    """The desired state of one operator; a cluster has at most one."""

    cluster: Annotated[str, Ref(*WHOLE)]
    """Cluster that it runs in."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] = "mpi-operator"
    """Namespace that it runs in, of this site or existing."""
    api: Version = "v2beta1"
    """Version of MPIJob that it serves. v1alpha2 is the document's, for releases up to 0.2; v2beta1 is for
    releases since 0.3.
    """
    image: str | None = None
    """Its image; empty = `mpioperator/mpi-operator`, v0.2.3 for v1alpha2 and 0.8.0 for v2beta1. If nodes
    can't reach Docker Hub, name the copy in your own registry.
    """
    delivery_image: str | None = None
    """v1alpha2 only: the image that provides kubectl to launchers; empty =
    `mpioperator/kubectl-delivery:latest`.
    """

    def takes(self, name: str) -> Iterator[Taken]:
        """Its cluster, which has one operator."""
        yield conflict.thing("cluster", "the MPI operator", "cluster", self.cluster)

    @model_validator(mode="after")
    def _delivery(self) -> Spec:
        if self.delivery_image and self.api != "v1alpha2":
            raise FieldError(
                "only v1alpha2 has one; since v2beta1 launchers reach their workers by SSH", "delivery_image"
            )
        return self

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """An operator that runs MPI jobs."""
        yield mpi(self.cluster, site)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its namespace and images."""
        yield namespace(space(self.namespace, self.cluster, site), self.cluster, site)
        yield from (image(each) for each in (self.image, self.delivery_image) if each is not None)
