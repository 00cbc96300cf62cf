"""One SSH connection for each machine and run: one login, shared by every read and by Ansible."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends.ansible import hostkeys, programs
from bfinfra.model import subprocesses
from bfinfra.model.errors import Denied, Malformed, Rejected, RemoteError, Unreachable
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.subprocesses import Done, Overdue
from bfinfra.model.waits import Wait

if TYPE_CHECKING:
    from bfinfra.backends.ansible.agent import Agent
    from bfinfra.backends.transport import Transport
    from bfinfra.model.ssh import LinuxMachine

READY = "bfinfra-is-in"
DESTINATION = "machine"  # the options say where it is
CONNECTING, LOGGING_IN = 10, 40  # seconds
ASK = """#!/bin/sh
if mkdir "$BFINFRA_ASKED.once" 2> /dev/null
then IFS= read -r answer < "$BFINFRA_ASKED" && printf "%s\\n" "$answer"
else kill "$PPID"
fi
"""
"""Answers once. A second question follows a refusal, or is for something else: an answer would be another
failed login, which may lock the account, and so ssh ends.
"""
BEFORE_LOGIN = (
    "kex_exchange_identification",
    "banner exchange",
    "System is going down",
    "System is booting up",
)
"""Words with a closed connection that isn't about the account."""
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
    """A machine after login. All commands go through its socket. If it breaks, ssh connects again by itself,
    with the same pinned keys and without a password.
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
        """Check the host's key, and log in. Raises Untrusted, Unreachable, Denied."""
        write_whole(self._hosts, hostkeys.known(self._transport, self.machine), PRIVATE)
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
            # The pipe's end ends the master process, which ends what it runs there: nothing outlives a
            # killed run.
            command = [
                *self.command(
                    ControlMaster="yes",
                    BatchMode="no" if self.machine.password else "yes",
                    LogLevel="INFO",  # else what sshd says of the account isn't shown
                ),
                f"echo {READY}; exec cat",
            ]
            self._process = subprocesses.start(command, env=environment, stdin=True)
            self._await()

    def run(self, command: str, stdin: bytes = b"", timeout: float = 60) -> Done:
        """Run a shell command on the machine. Raises Unreachable if the connection breaks, Rejected if it
        takes more than `timeout` seconds, Malformed if it prints more than is read.
        """
        server = self.machine.server
        try:
            done = subprocesses.run(
                [*self.command(BatchMode="yes"), command],
                env=programs.environment(),
                limit=timeout,
                stdin=stdin,
            )
        except Overdue:
            raise Rejected(
                "the machine takes too long to answer", server=server, why=f"more than {timeout:.0f} s"
            ) from None
        except OSError as error:
            raise Malformed(
                "the machine's answer can't be read", server=server, why=error.strerror or ""
            ) from None
        if done.code == 255:
            raise self._failure(done.stderr.decode(errors="replace"))
        return done

    def command(self, **more: str) -> list[str]:
        """The whole command line of ssh to the machine."""
        return [programs.find("ssh"), *self.arguments(**more), "--", DESTINATION]

    def arguments(self, **more: str) -> list[str]:
        """The options of `ssh` for the machine. The user's own settings don't count."""
        options = {**self._options, **more}
        return [
            "-F",
            "none",
            "-T",
            *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        ]

    def for_ansible(self) -> str:
        """The same options as one line, for Ansible."""
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
        """The environment in which ssh reads the password from a pipe that only it can read."""
        if not self.machine.password:
            yield programs.environment()
            return
        answer = programs.answer(self.machine.password, "password")
        program, pipe = self._folder / "ask", self._folder / f"asked-{self._number}"
        if not program.exists():
            write_whole(program, ASK, 0o700)
        os.mkfifo(pipe, 0o600)
        held = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(held, answer)  # stays in the pipe until ssh reads it
            yield programs.environment(
                SSH_ASKPASS=str(program), SSH_ASKPASS_REQUIRE="force", DISPLAY=":0", BFINFRA_ASKED=str(pipe)
            )
        finally:
            os.close(held)
            pipe.unlink()
            with contextlib.suppress(FileNotFoundError):
                Path(f"{pipe}.once").rmdir()

    def _await(self) -> None:
        """Wait until the login succeeds."""
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        output, wait = b"", Wait("the login", LOGGING_IN)
        while READY.encode() not in output:
            ready, _, _ = select.select([self._process.stdout], [], [], wait.left())
            if not ready:
                self._process.kill()
                if output:
                    raise self._no_shell(output)
                raise Unreachable(
                    "the login does not end",
                    server=self.machine.server,
                    why=f"no answer within {wait.limit:g} s",
                )
            if not (block := os.read(self._process.stdout.fileno(), 4096)):
                words = self._process.stderr.read(4096)
                raise self._ended(self._process.wait(), output, words)
            output = (output + block)[-65536:]

    def _ended(self, code: int, output: bytes, words: bytes) -> RemoteError:
        """The error for a login that ended. 255 is ssh's own; a signal came as it was asked again; any other
        code is that of the account's shell.
        """
        text = words.decode(errors="replace")
        if code >= 0 and code != 255:
            return self._no_shell(output + b"\n" + words)
        closed = "Connection closed by" in text and not any(each in text for each in BEFORE_LOGIN)
        return self._refused(programs.excerpt(text)) if code < 0 or closed else self._failure(text)

    def _no_shell(self, output: bytes) -> Denied:
        return Denied(
            f"{self.machine.user} gets no shell that runs commands",
            server=self.machine.server,
            why=programs.excerpt(output.decode(errors="replace")) or "it ends without a word",
            next="give the account a shell such as /bin/sh, or write another user for the machine",
        )

    def _refused(self, why: str) -> Denied:
        return Denied(
            f"the login of {self.machine.user} is refused",
            server=self.machine.server,
            why=why,
            next="check user, key and password of the machine, and whether the account is locked or expired",
        )

    def _failure(self, words: str) -> RemoteError:
        """The error for ssh's output."""
        why, server = programs.excerpt(words), self.machine.server
        if "Host key verification failed" in words or "host key is known for" in words:
            return hostkeys.refused(self._transport, self.machine)
        if "Permission denied" in words or "Too many authentication failures" in words:
            return self._refused(why)
        return Unreachable("the connection broke", server=server, why=why or "ssh gave no reason")
