"""The desired state of a Bitfusion client on Linux machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import SERVERS
from bfinfra.kinds.client_files import ClientFiles
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import Account, RemotePath


class User(Part):
    """A user of the client."""

    name: Account
    """The user, who must exist there."""
    home: RemotePath | None = None
    """The home folder, if it isn't /root or /home/NAME."""

    @property
    def folder(self) -> str:
        """The folder of the client's own files."""
        return f"{self.home or ('/root' if self.name == 'root' else f'/home/{self.name}')}/.bitfusion"


class Spec(resource.Spec):
    """The desired state of machines that are alike."""

    awaits: ClassVar = {"package": "download the Bitfusion client's package from the vendor's site"}

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines."""
    package: LocalFile
    """The client's .deb or .rpm for their distribution."""
    token: Annotated[str, Ref("bitfusion_token")] | None = None
    """Token to copy there; empty if the plug-in enabled the VM, so that its files are there."""
    vms: tuple[Annotated[str, Ref("bitfusion_vm")], ...] = ()
    """The settings of the machines' VMs to apply first. The VMs run again before anything is done on them."""
    client_files: ClientFiles | None = None
    """Instead of a token: a machine that is enabled, whose files are copied."""
    users: Annotated[tuple[User, ...], Field(min_length=1)] = (User(name="root"),)
    """The users of the client."""
    group: Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]{0,31}$|^$")] = "bitfusion"
    """The package's group, which users other than root must be in; empty = none."""
    list_gpus: bool = True
    """Ready only when `bitfusion list_gpus` succeeds for every user."""

    @model_validator(mode="after")
    def _one_source(self) -> Spec:
        if self.client_files and self.token:
            raise FieldError("give token or client_files, not both", "client_files")
        if self.client_files and self.client_files.host in self.hosts:
            raise FieldError(
                f"{self.client_files.host} is one of hosts, and has the files already", "client_files.host"
            )
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its machines, with one client each."""
        yield from (
            conflict.thing(f"hosts.{index}", f"the Bitfusion client on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    @property
    def asked(self) -> tuple[str, ...]:
        """Every machine that must answer."""
        return (*self.hosts, *((self.client_files.host,) if self.client_files else ()))

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """All servers, unless its token names them."""
        if self.token is None:
            yield SERVERS
