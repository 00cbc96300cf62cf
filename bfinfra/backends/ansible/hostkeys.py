"""Host keys: those that machines show, and those that a run accepts. Only keys that the site pins are
accepted; nothing is trusted on first use.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
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
        raise changed(machine, (str(machine.trust.sha256),), keys)
    return "".join(lines)


def refused(transport: Transport, machine: LinuxMachine) -> Untrusted:
    """The error for a machine whose key ssh does not accept, as the site's known_hosts file has another."""
    file = machine.trust.known_hosts
    pinned = tuple(key.sha256 for key in listed(file.path, machine.known_as)) if file else ()
    try:
        keys = shown(transport, machine.address, machine.port)
    except Unreachable:
        keys = ()
    return changed(machine, pinned or (str(machine.trust.sha256),)[: file is None], keys)


def listed(file: Path, name: str) -> tuple[HostKey, ...]:
    """The keys that a known_hosts file has for a name, which may be hashed in it; () if it can't be read."""
    command = [programs.find("ssh-keygen"), "-F", name, "-f", str(file)]
    try:
        done = subprocesses.run(command, env=programs.environment(), limit=TIMEOUT)
    except OSError:
        return ()
    return tuple(_keys(done.stdout.decode(errors="replace")))


def changed(machine: LinuxMachine, pinned: Iterable[str], keys: Iterable[HostKey]) -> Untrusted:
    """The error for a machine that shows other keys than those that the site has."""
    file = machine.trust.known_hosts
    trust = f"trust of {machine.name}" + (f" ({machine.trusted_at})" if machine.trusted_at else "")
    had = ", ".join(pinned) or f"no key for {machine.known_as}"
    shows = ", ".join(f"{key.sha256} ({key.type})" for key in keys) or "a key that can't be read now"
    return Untrusted(
        "the machine shows another host key than the pinned one",
        server=machine.server,
        why=f"{trust} has {had}{f' in {file.text}' if file else ''}; the machine shows {shows}",
        next="ask whoever runs the machine whether its key changed, and compare it there (ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub): only if so, write the new one there; if not, another machine "
        "answers in its place",
    )


def _keys(text: str) -> Iterable[HostKey]:
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and TYPE.fullmatch(words[1]) and not line.startswith("#"):
            try:
                base64.b64decode(words[2], validate=True)
            except binascii.Error:
                continue
            yield HostKey(words[1], words[2])
