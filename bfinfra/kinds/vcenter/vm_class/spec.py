"""The desired state of a VM class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from bfinfra.kinds.capabilities import GRAPHICS, hosts, vm_class
from bfinfra.model import resource
from bfinfra.model.errors import FieldError
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.units import Bytes, PciId

MIB = 2**20
SMALLEST = 512 * MIB
PerCent = Annotated[int, Field(ge=0, le=100)]


def _whole(number: int) -> int:
    if number < SMALLEST or number % MIB:
        raise ValueError("the memory of a VM class is at least 512MiB, in whole MiB")
    return number


class Model(Part):
    """A model of PCI devices."""

    vendor: PciId
    """PCI vendor id, such as 0x10de."""
    device: PciId
    """PCI device id, such as 0x1db6."""


class Card(Model):
    """A PCI device that vSphere picks from the free ones of its hosts (dynamic DirectPath I/O)."""

    label: str = ""
    """Take only cards with this hardware label."""
    alternatives: tuple[Model, ...] = ()
    """Other models that the card may be instead; from vSphere 8.0.2."""

    @model_validator(mode="after")
    def _once(self) -> Card:
        if len(set(self.models)) < len(self.models):
            raise FieldError("a model is named twice", "alternatives", "write each model once")
        return self

    @property
    def models(self) -> tuple[tuple[int, int], ...]:
        """Vendor and device of each model that it may be."""
        return tuple((each.vendor, each.device) for each in (self, *self.alternatives))


def _volume(number: int) -> int:
    if number < MIB or number % MIB:
        raise ValueError("a volume is at least 1MiB, in whole MiB")
    return number


class InstanceStorage(Part):
    """Disks on the storage of the host where the VM is. A class keeps them once it has them; their policy has
    to be one of the namespace's.
    """

    policy: Annotated[str, Ref("storage_policy", optional=True)]
    """Storage policy of these disks."""
    volumes: Annotated[tuple[Annotated[Bytes, AfterValidator(_volume)], ...], Field(min_length=1)]
    """Size of each disk, such as 100GiB."""


class Spec(resource.Spec):
    """The desired state of one VM class."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    cpus: Annotated[int, Field(ge=1)]
    """Virtual CPUs."""
    memory: Annotated[Bytes, AfterValidator(_whole)]
    """Memory, such as 64GiB."""
    cpu_reservation: PerCent = 0
    """How much of its CPUs is guaranteed, in per cent."""
    memory_reservation: PerCent = 0
    """How much of its memory is guaranteed, in per cent; 100 with any GPU."""
    description: str = ""
    """Free text. bfinfra writes its mark in a last line below it."""
    vgpus: tuple[str, ...] = ()
    """vGPU profiles, one per virtual GPU, such as grid_v100d-16c."""
    devices: tuple[Card, ...] = ()
    """Whole cards, one entry per card."""
    device_groups: tuple[str, ...] = ()
    """Vendor device groups of the hosts, such as Nvidia:2@nvidia_h100-80c%NVLink; from vSphere 8.0.2."""
    instance_storage: InstanceStorage | None = None
    """Disks on the hosts' own storage."""

    @model_validator(mode="after")
    def _reserved(self) -> Spec:
        if (self.vgpus or self.devices or self.device_groups) and self.memory_reservation != 100:
            raise FieldError(
                "100 is needed with vgpus, devices or device_groups: the memory of a VM with a GPU can't be "
                "swapped",
                "memory_reservation",
                "write memory_reservation: 100",
            )
        return self

    @property
    def gpu_count(self) -> int | None:
        """The GPUs of a machine; None if it has groups, whose size the class doesn't tell."""
        return None if self.device_groups else len(self.vgpus) + len(self.devices)

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The class."""
        yield vm_class(name)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """With vGPUs, the hosts of the clusters where namespaces offer it: only with their driver do they
        report its profile. With device groups also how they share their cards: only then do they tell what is
        in a group.
        """
        if self.vgpus or self.device_groups:
            yield from map(hosts, sorted(clusters(name, site)))
        if self.device_groups:
            yield Capability(GRAPHICS)


def clusters(name: str, site: Specs) -> set[str]:
    """The vSphere clusters where namespaces of the site offer this class."""
    return {
        str(spec.cluster)
        for key, spec in site.items()
        if key.kind == "supervisor_namespace" and name in spec.vm_classes
    }
