"""Host keys: those that machines show, and those that a run accepts. Only keys that the site pins are
accepted; nothing is trusted on first use.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bfinfra.backends.ansible import programs
from bfinfra.model import subprocesses
from bfinfra.model.errors import Unreachable, Untrusted
from bfinfra.model.records import dataclass
from bfinfra.model.sources import small

if TYPE_CHECKING:
    from bfinfra.backends.transport import Transport
    from bfinfra.model.ssh import LinuxMachine

TYPES = "ed25519,ecdsa,rsa"
TYPE = re.compile(r"[a-z0-9@.-]+")
TIMEOUT = 10  # seconds for a machine to show its keys


@dataclass(frozen=True, slots=True)
class HostKey:
    """One key of a machine: its type such as `ssh-ed25519`, its base64, its fingerprint as ssh-keygen prints
    it.
    """

    type: str
    key: str

    @property
    def sha256(self) -> str:
        """SHA256:…"""
        digest = hashlib.sha256(base64.b64decode(self.key)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


@dataclass(frozen=True)
class Shown:
    """Type and fingerprint of each key that a machine shows; `objection`: why it is not trusted, or ""."""

    server: str
    what: str
    keys: tuple[tuple[str, str], ...]
    objection: str


def look(transport: Transport, machine: LinuxMachine, what: str) -> Shown:
    """The keys of a machine, compared with those that the site pins. No login. Raises Unreachable."""
    found = shown(transport, machine.address, machine.port)
    try:
        pinned = known(transport, machine)
    except Untrusted as error:
        pinned, objection = "", error.problems[0].what
    else:
        objection = "" if _holds(pinned, found) else "none of these keys is in the known_hosts file"
    return Shown(machine.server, what, tuple((key.type, key.sha256) for key in found), objection)


def _holds(pinned: str, found: Iterable[HostKey]) -> bool:
    """Return whether the file contains one of the keys. ssh itself checks whether it is under the machine's
    name, as names may be hashed.
    """
    return any(f"{key.type} {key.key}" in pinned for key in found)


def shown(transport: Transport, address: str, port: int) -> tuple[HostKey, ...]:
    """The keys that a machine shows to anybody; nothing else is sent to it. Raises Unreachable."""
    host, real = transport.where(address, port)
    command = [programs.find("ssh-keyscan"), "-T", str(TIMEOUT), "-t", TYPES, "-p", str(real), "--", host]
    server = f"{address}:{port}"
    try:
        done = subprocesses.run(command, env=programs.environment(), limit=3 * TIMEOUT)
    except OSError as error:
        raise Unreachable("no SSH server shows a key", server=server, why=error.strerror or "") from None
    found = tuple(_keys(done.stdout.decode(errors="replace")))
    if not found:
        raise Unreachable(
            "no SSH server shows a key",
            server=server,
            why=programs.excerpt(done.stderr.decode(errors="replace")),
            next="check the address, and that its SSH server runs and no firewall is between",
        )
    return found


def known(transport: Transport, machine: LinuxMachine) -> str:
    """The lines of known_hosts for a machine whose pinned key it shows. Raises Untrusted."""
    if machine.trust.known_hosts is not None:
        try:
            return small(machine.trust.known_hosts.path)
        except OSError as error:
            raise Untrusted(
                "the known_hosts file can't be read", server=machine.server, why=error.strerror or ""
            ) from None
    keys = shown(transport, machine.address, machine.port)
    lines = [
        f"{machine.known_as} {key.type} {key.key}\n" for key in keys if key.sha256 == machine.trust.sha256
    ]
    if not lines:
        raise Untrusted(
            "the machine shows another host key than the pinned one",
            server=machine.server,
            why=f"it shows {', '.join(f'{key.sha256} ({key.type})' for key in keys)}",
            next="find out why its key changed; bfinfra trust SITE shows its keys",
        )
    return "".join(lines)


def _keys(text: str) -> Iterable[HostKey]:
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and TYPE.fullmatch(words[1]) and not line.startswith("#"):
            try:
                base64.b64decode(words[2], validate=True)
            except binascii.Error:
                continue
            yield HostKey(words[1], words[2])
