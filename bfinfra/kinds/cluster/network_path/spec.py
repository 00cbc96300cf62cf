"""The desired state of a path from pods to the Bitfusion servers."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import image, namespace, path, server, space
from bfinfra.kinds.cluster_locator import CLUSTERS, DnsLabel
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.units import Seconds

PORTS = (56001, 55001, 45201)  # control, dispatcher, the first port of the data path
PROBE = "bfinfra-path-"
LONGEST = 50  # longest name of a path: its probe is the Job `bfinfra-path-NAME`, at most 63 characters
Port = Annotated[int, Field(ge=1, le=65535)]


class Probe(resource.Part):
    """A pod that tries each address. Without it nothing is written and nothing is tried."""

    image: Annotated[str, StringConstraints(min_length=1)] = "docker.io/library/busybox:1.36"
    """Image with a shell and netcat (`sh`, `nc`), such as busybox, from a registry that the cluster can pull
    from.
    """
    patience: Annotated[Seconds, Field(ge=1, le=600)] = 30
    """How long it tries an address that it can't reach."""
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    """Account to pull the image with."""


class Spec(resource.Spec):
    """The desired state of one path."""

    name_pattern = rf"(?=.{{1,{LONGEST}}}$){DNS_LABEL}"
    name_rule = DNS_LABEL_RULE.replace("63", str(LONGEST))

    cluster: Annotated[str, Ref(*CLUSTERS)]
    """Cluster, or supervisor namespace, that the pods run in."""
    namespace: Annotated[DnsLabel, Ref("namespace", optional=True)] | None = None
    """Their namespace; empty = default, or the supervisor namespace itself."""
    pods: dict[str, str] = Field(default_factory=dict)
    """Labels of the pods; empty = pods that no policy selects by labels. The probe's pod has them, too: a
    Service that selects them includes it while it runs.
    """
    token: Annotated[str, Ref("bitfusion_token")] | None = None
    """The token whose servers the pods connect to."""
    addresses: tuple[Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+$")], ...] = ()
    """Further addresses."""
    ports: Annotated[tuple[Port, ...], Field(min_length=1)] = PORTS
    """TCP ports. The data path begins at 45201: write the ports that your version of Bitfusion uses."""
    probe: Probe | None = None
    """Try it: apply starts a Job whose pod connects to each port, and fails if one can't be reached. The Job
    stays as the record. `probe: {}` takes all defaults.
    """

    def takes(self, name: str) -> Iterator[Taken]:
        """The Job of its probe."""
        if self.probe:
            yield conflict.thing(
                "probe", f"Job/{PROBE}{name} in {self.namespace or 'default'}", "cluster", self.cluster
            )

    @model_validator(mode="after")
    def _somewhere(self) -> Spec:
        if not self.token and not self.addresses:
            raise ValueError("give token or addresses")
        for number, address in enumerate(self.addresses):
            try:
                ipaddress.ip_address(address)
            except ValueError as error:
                raise FieldError(str(error), ("addresses", number)) from None
        return self

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """A path that was tried."""
        yield path(space(self.namespace, self.cluster, site), self.cluster, site)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its namespace, the servers at its addresses, and the probe's image."""
        yield namespace(space(self.namespace, self.cluster, site), self.cluster, site)
        yield from map(server, self.addresses)
        if self.probe is not None:
            yield image(self.probe.image)
