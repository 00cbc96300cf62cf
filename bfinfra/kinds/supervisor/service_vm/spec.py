"""The desired state of a machine of the VM Service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import library
from bfinfra.kinds.cluster_locator import DnsLabel
from bfinfra.kinds.supervisor.base import in_namespace
from bfinfra.kinds.supervisor.base.pools import NodeDemand, Pool
from bfinfra.model import resource
from bfinfra.model.choice import each_once
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key, Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.units import MIB, Bytes

Text = Annotated[str, StringConstraints(min_length=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Property = Annotated[str, StringConstraints(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]


class Image(Part):
    """The source that the machine is made from."""

    library: Annotated[str, Ref("content_library", optional=True)]
    """A content library of its namespace."""
    item: Text
    """An item of it, an OVF template."""


class CloudInit(Part):
    """The settings that cloud-init makes at the first start."""

    user_data: Secret | None = None
    """Reference to the user data. bfinfra puts it into a Secret beside the machine."""
    ssh_authorized_keys: tuple[Text, ...] = ()
    """Public SSH keys of the image's default user."""


class Disk(Part):
    """A disk beside the image's: a claim for a volume. It grows with its size, and never shrinks."""

    size: Annotated[Bytes, Field(gt=0)]
    """Capacity, such as 500GiB."""
    storage_class: Text | None = None
    """Storage class, instead of the machine's."""
    keep: bool = False
    """Whether the disk is kept when the machine is replaced. Otherwise it is deleted with the machine."""

    @model_validator(mode="after")
    def _whole_mib(self) -> Disk:
        if self.size % MIB:
            raise FieldError("it must be a multiple of 1 MiB", "size")
        return self


class Probe(Part):
    """The probe by which the supervisor finds out whether the machine is ready."""

    tcp: Port
    """A TCP port that answers. Supervisors with VPC networks refuse this probe."""


class Spec(resource.Spec):
    """The desired state of one machine; its name is the machine's name in the namespace."""

    name_pattern = r"[a-z]([-a-z0-9]{0,40}[a-z0-9])?"
    name_rule = "lower-case letters, digits and dashes, a letter first, at most 42 characters"

    namespace: Annotated[str, Ref("supervisor_namespace")]
    """The supervisor namespace."""
    image: Image
    """What the machine is made from. Another image replaces the machine."""
    vm_class: DnsLabel
    """VM class; the supervisor namespace must offer it. CPUs and memory change while the machine is off;
    another vGPU or card replaces the machine.
    """
    storage_class: Text
    """Storage class of its disks; the supervisor namespace must offer it."""
    properties: dict[Property, Secret | str] = Field(default_factory=dict)
    """OVF properties, read at the machine's start. Passwords by reference only: bfinfra puts them into a
    Secret beside the machine.
    """
    cloud_init: CloudInit | None = None
    """What cloud-init sets up, instead of `properties`."""
    power: Literal["on", "off"] = "on"
    """Whether it runs."""
    disks: dict[DnsLabel, Disk] = Field(default_factory=dict)
    """Disks beside the image's. One that leaves the file is deleted with its data, which needs
    --allow-delete.
    """
    expose: tuple[Port, ...] = ()
    """TCP ports that the load balancer opens to the machine."""
    ready: Probe | None = None
    """How the supervisor finds out whether the machine is ready; without it, it is ready when it runs."""

    @model_validator(mode="after")
    def _one_bootstrap(self) -> Spec:
        if self.properties and self.cloud_init is not None:
            raise FieldError(
                "properties and cloud_init exclude each other: the VM Service refuses a machine with both",
                "cloud_init",
                "write one of the two",
            )
        each_once("expose", [str(port) for port in self.expose])
        return self

    @property
    def secrets(self) -> dict[str, Secret]:
        """Key of the machine's Secret → reference to the value."""
        found = {key: value for key, value in self.properties.items() if isinstance(value, Secret)}
        if self.cloud_init is not None and self.cloud_init.user_data is not None:
            found[USER_DATA] = self.cloud_init.user_data
        return found

    @property
    def vm_classes(self) -> Mapping[str, str]:
        """Dotted field → VM class."""
        return {"vm_class": self.vm_class}

    @property
    def storage(self) -> Mapping[str, str]:
        """Dotted field → every storage class that the spec names."""
        own = {f"disks.{name}.storage_class": disk.storage_class for name, disk in self.disks.items()}
        return {"storage_class": self.storage_class, **{at: name for at, name in own.items() if name}}

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """Classes that its namespace doesn't offer."""
        return in_namespace.conflicts(mine, site)

    def needs(self, key: Key) -> Iterator[NodeDemand]:
        """Itself, as far as it takes vGPUs."""
        if self.power == "on":
            yield NodeDemand(Spot(key, "vm_class"), self.namespace, self.vm_class, 1, 1)

    def pools(self) -> tuple[Pool, ...]:
        """Itself while it runs, and its disks."""
        disks = (
            Pool(f"disks.{name}", 1, "", disk.storage_class or self.storage_class, disk.size)
            for name, disk in self.disks.items()
        )
        return (Pool("", int(self.power == "on"), self.vm_class, self.storage_class), *disks)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its library, class, storage and hosts."""
        yield library(self.image.library)
        yield from in_namespace.requires(self, site)


USER_DATA = "user-data"
"""The key of cloud-init's user data in the machine's Secret."""
