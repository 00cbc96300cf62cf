"""One SSH connection a machine and run: logged in once, shared by every look and by Ansible, ended with the
run.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends.ansible import hostkeys, programs
from bfinfra.model.errors import Denied, Rejected, RemoteError, Unreachable, Untrusted

if TYPE_CHECKING:
    from bfinfra.backends.ansible.agent import Agent
    from bfinfra.backends.transport import Transport
    from bfinfra.model.ssh import LinuxMachine

READY = "bfinfra-is-in"
DESTINATION = "machine"  # the options say where it is
CONNECTING, LOGGING_IN = 10, 40  # seconds
ASK = '#!/bin/sh\nIFS= read -r answer < "$BFINFRA_ASKED" && printf "%s\\n" "$answer"\n'
ALWAYS = {
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "UpdateHostKeys": "no",
    "CheckHostIP": "no",
    "VerifyHostKeyDNS": "no",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "EscapeChar": "none",
    "LogLevel": "ERROR",
    "ConnectTimeout": str(CONNECTING),
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "4",
    "IdentitiesOnly": "yes",
    "AddKeysToAgent": "no",
}


class Connection:
    """A machine, logged in to. All else goes through its socket; where that broke, ssh connects anew by
    itself, under the same pins, and asks nobody for a password.
    """

    def __init__(
        self, machine: LinuxMachine, folder: Path, number: int, transport: Transport, agent: Agent
    ) -> None:
        self.machine = machine
        self._socket = folder / f"c{number}"
        self._hosts = folder / f"known-{number}"
        self._folder, self._number, self._transport, self._agent = folder, number, transport, agent
        self._process: subprocess.Popen[bytes] | None = None
        self.where = transport.where(machine.address, machine.port)

    def open(self) -> None:
        """Check the host's key, log in. Untrusted, Unreachable, Denied."""
        self._hosts.write_text(hostkeys.known(self._transport, self.machine))
        self._options = {
            **ALWAYS,
            "UserKnownHostsFile": str(self._hosts),
            "HostKeyAlias": self.machine.known_as,
            "User": self.machine.user,
            "HostName": self.where[0],
            "Port": str(self.where[1]),
            "ControlPath": str(self._socket),
            **self._identity(),
        }
        with self._asked() as environment:
            # It ends with what it runs there, and that one with this process's end of the pipe: nothing
            # outlives a killed run.
            command = [
                *self.command(ControlMaster="yes", BatchMode="no" if self.machine.password else "yes"),
                f"echo {READY}; exec cat",
            ]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=environment,
            )
            self._await()

    def run(
        self, command: str, stdin: bytes = b"", patience: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a shell command there. Unreachable where the connection breaks, Rejected where it takes longer
        than `patience` seconds.
        """
        try:
            done = subprocess.run(
                [*self.command(BatchMode="yes"), command],
                input=stdin,
                capture_output=True,
                timeout=patience,
                check=False,
                start_new_session=True,
                env=programs.environment(),
            )
        except subprocess.TimeoutExpired:
            raise Rejected(
                "the machine takes too long to answer",
                server=self.machine.server,
                why=f"more than {patience:.0f} s",
            ) from None
        if done.returncode == 255:
            raise self._failure(done.stderr.decode(errors="replace"))
        return done

    def command(self, **more: str) -> list[str]:
        """The command line of ssh, with all that it takes to get there."""
        return [programs.find("ssh"), *self.arguments(**more), DESTINATION]

    def arguments(self, **more: str) -> list[str]:
        """The options of `ssh` that lead there; nothing of the user's own settings counts."""
        options = {**self._options, **more}
        return [
            "-F",
            "none",
            "-T",
            *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        ]

    def for_ansible(self) -> str:
        """The same as one line, as Ansible takes it."""
        return shlex.join(self.arguments(BatchMode="yes"))

    def close(self) -> None:
        """Log out."""
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=CONNECTING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _identity(self) -> dict[str, str]:
        machine, found = (
            self.machine,
            {
                "IdentityAgent": "none",
                "IdentityFile": "none",
                "PreferredAuthentications": "password,keyboard-interactive",
            },
        )
        if machine.key:
            public = self._agent.add(machine.key)
            found = {
                "IdentityAgent": str(self._agent.socket),
                "IdentityFile": str(public),
                "PreferredAuthentications": "publickey",
            }
            if machine.password:
                found["PreferredAuthentications"] += ",password,keyboard-interactive"
        return {**found, "NumberOfPasswordPrompts": "1"}

    @contextlib.contextmanager
    def _asked(self) -> Iterator[dict[str, str]]:
        """The environment in which ssh gets the password by a pipe that only it reads."""
        if not self.machine.password:
            yield programs.environment()
            return
        program, pipe = self._folder / "ask", self._folder / f"asked-{self._number}"
        if not program.exists():
            fresh = self._folder / f"ask-{self._number}"
            fresh.write_text(ASK)
            fresh.chmod(0o700)
            fresh.replace(program)
        os.mkfifo(pipe, 0o600)
        held = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(
                held, self.machine.password.reveal().encode() + b"\n"
            )  # stays in the pipe until it is asked for
            yield programs.environment(
                SSH_ASKPASS=str(program), SSH_ASKPASS_REQUIRE="force", DISPLAY=":0", BFINFRA_ASKED=str(pipe)
            )
        finally:
            os.close(held)
            pipe.unlink()

    def _await(self) -> None:
        """Until it is in."""
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        heard, limit = b"", time.monotonic() + LOGGING_IN
        while READY.encode() not in heard:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, limit - time.monotonic()))
            if not ready:
                self._process.kill()
                raise Unreachable(
                    "the machine does not let anybody in",
                    server=self.machine.server,
                    why=f"no answer within {LOGGING_IN} s",
                )
            if not (block := os.read(self._process.stdout.fileno(), 4096)):
                raise self._failure(self._process.stderr.read(4096).decode(errors="replace"))
            heard = (heard + block)[-65536:]

    def _failure(self, words: str) -> RemoteError:
        """The error for what ssh printed."""
        why, server = programs.excerpt(words), self.machine.server
        if "Host key verification failed" in words or "host key is known for" in words:
            return Untrusted(
                "the machine's host key is not the pinned one",
                server=server,
                why=why,
                next="bfinfra trust SITE shows what it shows",
            )
        if "Permission denied" in words or "Too many authentication failures" in words:
            return Denied(
                f"{self.machine.user} is not let in",
                server=server,
                why=why,
                next="check user, key and password of the machine",
            )
        return Unreachable("the connection broke", server=server, why=why or "ssh said nothing")
