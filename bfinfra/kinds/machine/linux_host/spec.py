"""The desired state of an existing Linux machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from bfinfra.kinds import capabilities
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.secret import Secret
from bfinfra.model.ssh import Account, HostAddress, HostTrust, LinuxMachine, RemoteProgram


class Spec(resource.Spec):
    """The desired state of one machine."""

    awaits: ClassVar = {
        "key": "put a private key there whose public key the machine accepts",
        "password": "get it from whoever runs the machine",
        "sudo_password": "get it from whoever runs the machine",
        "trust.known_hosts": (
            "write the machine's host key into it (bfinfra trust SITE shows it; compare it on the machine)"
        ),
    }

    address: HostAddress
    """Its name or address."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    """Port of its SSH server."""
    trust: HostTrust
    """The host key that it must show."""
    user: Account = "root"
    """The user to log in as."""
    key: Secret | None = None
    """Reference to that user's private key, without a passphrase."""
    password: Secret | None = None
    """Reference to that user's password, if there is no key."""
    root: bool = True
    """Work as root, by sudo if the user isn't root."""
    sudo_password: Secret | None = None
    """Reference to the password for sudo, if it asks for one."""
    python: RemoteProgram = "/usr/bin/python3"
    """The Python interpreter there, for Ansible's modules: its path, or its name."""
    vm: Annotated[str, Ref("virtual_machine")] | None = None
    """The virtual machine of this site that it is. bfinfra connects once that runs, and removes what is on it
    before it deletes it. A plan warns if VMware Tools there report other addresses than `address`.
    """

    @model_validator(mode="after")
    def _lets_in(self) -> Spec:
        if self.key is None and self.password is None:
            raise ValueError("give key or password")
        return self

    def answers_at(self) -> str:
        """Its SSH server."""
        return self.address if self.port == 22 else f"{self.address}:{self.port}"

    def takes(self, name: str) -> Iterator[Taken]:
        """Its address, if that is an IP address; one machine may have several host names."""
        yield from conflict.address(
            "address", self.address, owner=("vm", self.vm) if self.vm else ("machine", self.address)
        )

    def machine(self, name: str) -> LinuxMachine:
        """The machine as the backend takes it."""
        return LinuxMachine(
            name,
            self.address,
            self.user,
            self.trust,
            self.port,
            self.key,
            self.password,
            self.sudo_password,
            self.root,
            self.python,
        )

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """A machine that no other resource restarts later."""
        if self.vm is not None:
            yield capabilities.machine(self.vm)
