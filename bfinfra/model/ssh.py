"""Access to Linux machines by SSH and the commands to run there, as data. Secrets stay references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, model_validator

from bfinfra.model.choice import one_of
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile

HostAddress = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}$")]
"""A name or an address, never text that ssh could take for an option."""
Account = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.@\\-]{0,63}$")]
"""A user's name on a machine."""


def _fingerprint(value: str) -> str:
    if not re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}", value.rstrip("=")):
        raise ValueError("expected what ssh-keygen -l prints: SHA256: and 43 characters")
    return value.rstrip("=")


RemotePath = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/+-]{0,999}$")]
"""An absolute path on a machine, of characters that mean nothing to a shell, an option or a template."""
RemoteProgram = Annotated[
    str, StringConstraints(pattern=r"^(/[A-Za-z0-9._/+-]{1,999}|[A-Za-z0-9][A-Za-z0-9._+-]{0,99})$")
]
"""A program on a machine, by its path or its name there."""


class HostTrust(BaseModel):
    """The host key that a machine must show. One of these is required: nothing is trusted on first use."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    known_hosts: LocalFile | None = None
    """A file such as ~/.ssh/known_hosts that contains the machine's key under its address."""
    sha256: Annotated[str, AfterValidator(_fingerprint)] | None = None
    """Fingerprint of one of its host keys, as `bfinfra trust` and ssh-keygen print it: SHA256:…"""

    @model_validator(mode="after")
    def _one(self) -> HostTrust:
        one_of("; bfinfra trust shows the fingerprints", known_hosts=self.known_hosts, sha256=self.sha256)
        return self


@dataclass(frozen=True, slots=True)
class LinuxMachine:
    """A Linux machine reached by SSH. `name`: its name in the site; `root`: run commands and plays as root,
    with sudo if `user` isn't root.

    `sudo_password`: for sudo, if it asks; `python`: the machine's interpreter for Ansible modules;
    `trusted_at`: where the site says what to trust, as file:line:column.
    """

    name: str
    address: str
    user: str
    trust: HostTrust
    port: int = 22
    key: Secret | None = None
    password: Secret | None = None
    sudo_password: Secret | None = None
    root: bool = True
    python: str = "/usr/bin/python3"
    trusted_at: str = field(default="", compare=False)

    @property
    def server(self) -> str:
        """`host:port`."""
        return f"{self.address}:{self.port}"

    @property
    def known_as(self) -> str:
        """The name of its key in a known_hosts file."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"


@dataclass(frozen=True)
class Play:
    """An Ansible role and the machines that it runs on, each with its variables. `tasks`: file of the role;
    `roles`: its folder, if it isn't one of bfinfra's own.

    `secrets`: for all machines; the role reads them as `bfinfra_secrets.NAME`, in tasks with `no_log: true`.
    `texts`: secret texts by name, read the same way. `limit`: seconds for the whole.
    """

    role: str
    machines: Mapping[LinuxMachine, Mapping[str, Any]]
    tasks: str = "main"
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    limit: int = 1800
    roles: Path | None = None
