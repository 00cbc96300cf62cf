"""The desired state of a GPU host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import SETTINGS, host, hosts
from bfinfra.model import resource
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.resource import Part
from bfinfra.model.units import Bytes, PciId

PciAddress = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]


class Passthrough(Part):
    """Cards of one model, or one card by its address."""

    vendor: PciId | None = None
    """PCI vendor, such as 0x10de (NVIDIA)."""
    device: PciId | None = None
    """PCI device, such as 0x1db6 (V100 PCIe 32GB)."""
    count: Annotated[int, Field(ge=1, le=64)] = 1
    """How many cards of this model."""
    address: PciAddress | None = None
    """One card by its PCI address, such as 0000:3b:00.0."""
    memory: Bytes | None = None
    """Memory of each card, for a model that bfinfra doesn't know."""

    @model_validator(mode="after")
    def _one(self) -> Passthrough:
        by_make = self.vendor is not None and self.device is not None
        if by_make == (self.address is not None) or (
            self.address and (self.vendor or self.device or self.count > 1)
        ):
            message = "give vendor and device (and count), or address"
            raise FieldError(message, "address") if self.address else ValueError(message)
        return self


class Spec(resource.Spec):
    """The desired state of one host; its name is the host's name in vCenter."""

    cluster: str | None = None
    """The cluster that the host must be in, by name or path."""
    passthrough: tuple[Passthrough, ...] = ()
    """The cards to pass through; empty if the GPUs are shared as vGPUs."""
    reboot: Literal["never", "if_needed"] = "never"
    """never: report that a reboot is needed; if_needed: reboot through maintenance mode if passthrough takes
    effect only then.
    """
    reboot_in_use: bool = False
    """For a reboot, shut down this site's running GPU servers on the host. VMs of others always prevent the
    reboot.
    """

    def parts(self) -> Iterator[str]:
        """Its cards."""
        for each in self.passthrough:
            name = each.address or f"{each.vendor:04x}:{each.device:04x}"
            yield from [f"GPU {name}"] * each.count

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The host, once it has restarted for its cards."""
        yield host(name)
        if self.cluster is not None:
            yield hosts(self.cluster)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Every other setting of the host: it may be unreachable for a while, and some settings take effect
        only when it starts.
        """
        yield Capability(SETTINGS, name)
