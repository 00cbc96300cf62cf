"""The desired state of FlexDirect on machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import FLEXDIRECT, on_machines
from bfinfra.model import conflict, resource
from bfinfra.model.choice import each_once
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile

PORT = 56001
PACKAGED = ("deb", "rpm")
Device = Annotated[str, StringConstraints(pattern=r"^\d{1,3}$")]
Address = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f.:]{2,45}$")]


def form(name: str) -> str:
    """deb, rpm, or script for an installer, by the name of the file; "" for none."""
    ending = name.rpartition(".")[2]
    return ending if ending in PACKAGED or not name else "script"


class Scheduler(Part):
    """`flexdirect resource_scheduler`, under systemd."""

    gpus: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many GPUs it offers (-n); all, if neither this nor devices is given."""
    devices: tuple[Device, ...] = ()
    """Numbers of the GPUs that it offers (-d), instead of how many."""
    port: Annotated[int, Field(ge=1, le=65535)] = PORT
    """Port that it listens on (-s)."""
    address: Address | None = None
    """The machine's address that it listens on (-l); empty = all."""

    @model_validator(mode="after")
    def _one(self) -> Scheduler:
        if self.gpus is not None and self.devices:
            raise FieldError("give gpus or devices, not both", "devices")
        return self


class Spec(resource.Spec):
    """The desired state of machines that are alike."""

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines."""
    awaits: ClassVar = {
        "package": "download FlexDirect's package",
        "license": "get the license from whoever sold FlexDirect",
    }
    digested = "license"

    package: LocalFile
    """FlexDirect's .deb or .rpm; or its installer, a script that bash runs."""
    uninstall: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    """The command that uninstalls what an installer installed, as a list of words, such as
    [/opt/bitfusionio/uninstall, --yes]. The installer itself is at /var/cache/bfinfra/NAME on the machine.
    bfinfra runs it on destroy, and before it installs the package in another form. Without it the program
    stays then, and the plan says so.
    """
    license: Secret | None = None
    """Reference to the license, which is activated on each machine."""
    license_by: Literal["argument", "stdin"] = "argument"
    """How `flexdirect init` gets it: as `-l LICENSE`, as the vendor does unattended (other users of that
    machine can see it for a moment), or as its answer.
    """
    scheduler: Scheduler | None = None
    """The scheduler, for GPU servers."""
    os: Annotated[str, StringConstraints(pattern=r"^[a-z]+( [0-9.]+)?$")] | None = None
    """Distribution, with or without version, of the containers that use it, such as ubuntu 20.04: it must be
    that of the hosts.
    """
    health: Literal["pass", "marginal", "any"] = "marginal"
    """The worst status of `flexdirect health` with which a machine counts as ready; any: health
    is not read.
    """

    @model_validator(mode="after")
    def _each_once(self) -> Spec:
        each_once("hosts", self.hosts)
        if self.uninstall and form(self.package.text) in PACKAGED:
            raise FieldError("it is for installers; a package manager removes a .deb or .rpm", "uninstall")
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its machines, with one FlexDirect each."""
        yield from (
            conflict.thing(f"hosts.{index}", f"FlexDirect on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The program on its machines and, with a scheduler, GPUs."""
        return on_machines(FLEXDIRECT, self.hosts)
