"""The networks that a workload cluster has for itself."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Annotated, Protocol

from pydantic import AfterValidator

from bfinfra.model.conflict import Inner


def _cidr(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        raise ValueError(f"{text} is not a network such as 192.168.0.0/16") from None


Cidr = Annotated[str, AfterValidator(_cidr)]


class OwnNetworks(Protocol):
    """A cluster's networks, as a site writes them."""

    @property
    def pods(self) -> tuple[str, ...]:
        """Networks of the pods, as CIDR."""

    @property
    def services(self) -> tuple[str, ...]:
        """Networks of the services, as CIDR."""


def inside(networks: OwnNetworks) -> Iterator[Inner]:
    """The networks that exist inside the cluster only, each with the field that names it."""
    for field, found in (("pods", networks.pods), ("services", networks.services)):
        for index, cidr in enumerate(found):
            yield Inner(f"network.{field}.{index}", cidr)
