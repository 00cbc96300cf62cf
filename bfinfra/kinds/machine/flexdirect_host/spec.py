"""What a user writes for FlexDirect on machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import FLEXDIRECT, on_machines
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
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
    """deb, rpm, or script for an installer, by the name of the file; "" where there is none."""
    ending = name.rpartition(".")[2]
    return ending if ending in PACKAGED or not name else "script"


class Scheduler(Part):
    """`flexdirect resource_scheduler`, under systemd."""

    gpus: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many GPUs it gives out (-n); all where neither this nor devices is given."""
    devices: tuple[Device, ...] = ()
    """Numbers of the GPUs that it gives out (-d), instead of how many."""
    port: Annotated[int, Field(ge=1, le=65535)] = PORT
    """Where it listens (-s)."""
    address: Address | None = None
    """On which of the machine's addresses it listens (-l); on all where nothing is said."""

    @model_validator(mode="after")
    def _one(self) -> Scheduler:
        if self.gpus is not None and self.devices:
            raise ValueError("give gpus or devices, not both")
        return self


class Spec(resource.Spec):
    """What a user writes for machines that are alike."""

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines."""
    awaits: ClassVar = {
        "package": "download FlexDirect's package",
        "license": "get the license from whoever sold FlexDirect",
    }
    digested = "license"

    package: LocalFile
    """FlexDirect's .deb or .rpm; or its installer, a script that bash runs, downloaded before."""
    uninstall: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    """What takes the program away again that an installer put there: a command and its words, such as
    [/opt/bitfusionio/uninstall, --yes]. The installer itself is at /var/cache/bfinfra/NAME on the machine.
    Run on destroy, and before the package comes in another form; without it the program stays then, and
    the plan says so.
    """
    license: Secret | None = None
    """Reference to the license; licensing is done on each machine."""
    license_by: Literal["argument", "stdin"] = "argument"
    """How `flexdirect init` gets it: `-l LICENSE`, as its makers do unattended (others on that machine can
    see it for a moment), or as its answer.
    """
    scheduler: Scheduler | None = None
    """On GPU servers."""
    os: Annotated[str, StringConstraints(pattern=r"^[a-z]+( [0-9.]+)?$")] | None = None
    """Distribution, or it and its version, of the containers that use it, such as ubuntu 20.04: host and
    container must have the same.
    """
    health: Literal["pass", "marginal", "any"] = "marginal"
    """The worst that `flexdirect health` may say on each machine for it to be ready; any: it isn't asked."""

    @model_validator(mode="after")
    def _each_once(self) -> Spec:
        if len(set(self.hosts)) != len(self.hosts):
            raise ValueError("a machine stands there twice")
        if self.uninstall and form(self.package.text) in PACKAGED:
            raise ValueError(
                "uninstall is for installers; a .deb or .rpm is taken away by its package manager"
            )
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its machines: FlexDirect is there once."""
        yield from (
            conflict.thing(f"hosts.{index}", f"FlexDirect on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The program on its machines, and with a scheduler GPUs."""
        return on_machines(FLEXDIRECT, self.hosts)
