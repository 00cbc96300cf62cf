"""Holds private keys in an ssh-agent of the run's own. The keys come from secret references, are in no file,
and disappear with bfinfra, however it ends.
"""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as form

from bfinfra.backends.ansible import programs
from bfinfra.formats import shell
from bfinfra.model import subprocesses
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.secret import Secret
from bfinfra.model.waits import Wait

TIMEOUT = 10  # seconds
LOOK = 0.002  # seconds between two looks whether it listens
WATCHED = '"$1" -D -a "$2" & cat; kill $!; wait'
"""Ends the agent with this process's end of the pipe; by itself it would notice up to ten seconds later."""


class Agent:
    """Starts with the first key."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "agent"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._files: dict[object, Path] = {}
        self._lock = threading.Lock()

    def add(self, key: Secret) -> Path:
        """Load a private key. Returns the file of its public key, by which ssh finds it in the agent. Raises
        BfinfraError if it is no private key, or has a passphrase.
        """
        with self._lock:
            if key.leads not in self._files:
                self._start()
                self._files[key.leads] = self._load(key, self._folder / f"key-{len(self._files)}.pub")
            return self._files[key.leads]

    def close(self) -> None:
        """End the agent, and remove its keys."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def _start(self) -> None:
        if self._process is not None:
            return
        self._process = subprocesses.start(
            ["/bin/sh", "-c", WATCHED, "sh", programs.find("ssh-agent"), str(self.socket)],
            env=programs.environment(),
            stdin=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait = Wait("the start of ssh-agent", TIMEOUT)
        while not self._listens():
            if self._process.poll() is not None or not wait.left():
                raise BfinfraError(
                    Problem(
                        "ssh-agent did not start",
                        next=f"run it by hand: {shell.line(('ssh-agent', '-a', str(self.socket), 'true'))}",
                    )
                )
            wait.rest(LOOK)

    def _listens(self) -> bool:
        """Return whether a client can connect. The socket's file exists a moment before that."""
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def _load(self, key: Secret, public: Path) -> Path:
        text = key.reveal().rstrip("\n") + "\n"
        write_whole(public, _public(key, text), PRIVATE)  # ssh warns of files that others may read
        try:
            done = subprocesses.run(
                [programs.find("ssh-add"), "-q", "-"],
                env=programs.environment(SSH_AUTH_SOCK=str(self.socket)),
                limit=TIMEOUT,
                stdin=text.encode(),
            )
        except OSError as error:
            raise _unfit(key, f"ssh-add: {error.strerror}") from None
        if done.code:
            raise _unfit(key, programs.excerpt(done.stderr.decode(errors="replace")))
        return public


def _public(key: Secret, text: str) -> str:
    """The line of the public key, by which ssh asks for the private one."""
    try:
        read = form.load_ssh_private_key if "OPENSSH PRIVATE KEY" in text else form.load_pem_private_key
        found = read(text.encode(), None).public_key()
        return found.public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode() + "\n"
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unfit(
            key, "it has a passphrase" if "assw" in str(error) else "it is not a private key that SSH knows"
        ) from None


def _unfit(key: Secret, why: str) -> BfinfraError:
    return BfinfraError(
        Problem(
            f"the private key {key} can't be used",
            why=why,
            next="give a private key in OpenSSH's or PEM form, without a passphrase",
        )
    )
