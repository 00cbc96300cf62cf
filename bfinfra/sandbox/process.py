"""Starts, finds, resets and stops a sandbox, which is always a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bfinfra.sandbox.steering import Steering

FORMAT = 1
NEEDED = ("PATH", "HOME", "TMPDIR", "TZ", "LANG", "SYSTEMROOT", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
TIMEOUT = 30  # seconds for start and stop
POLL = 0.005  # seconds


class SandboxError(RuntimeError):
    """A sandbox that doesn't start, stop or answer."""


class Launched(Protocol):
    """A process as its parent sees it."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""

    def kill(self) -> None:
        """End it at once."""


@dataclass
class Running(Steering):
    """A running sandbox, as in its endpoints.json. `env`: values of a site's {env: …}; `files`: folder of
    the files that sites name.

    `clients`: variables for govc, kubectl and others, without their passwords; `env_file` has those too.
    """

    pid: int
    started: str
    ca_file: Path
    control: str
    addresses: Mapping[str, str]
    env: Mapping[str, str] = field(repr=False)
    files: Path
    state: Path
    clients: Mapping[str, str] = field(default_factory=dict)

    @property
    def env_file(self) -> Path:
        """The file of variables that a shell reads with `. FILE`. Only its owner may read it."""
        return (self.state / "env").resolve()

    def lookup(self, host: str, port: int) -> tuple[str, int] | None:
        """Return the real address of "host:port"; None where the sandbox has no such address. It is read on
        each call, because guests are created and deleted.
        """
        name = (
            f"{host}:{port}".lower()
        )  # a host's name may be written in capitals, and clients send it in small letters
        if fresh := running(self.state):
            self.addresses = fresh.addresses
        found = next((real for written, real in self.addresses.items() if written.lower() == name), None)
        if found is None and name in self.addresses.values():
            return host, port
        if found is None:
            return None
        ip, _, real = found.rpartition(":")
        return ip, int(real)


def start(world: Path, state: Path, pace: float | None = None) -> Running:
    """Start the world's process and wait until its servers listen. Raises SandboxError with the reason if it
    does not.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = ["serve", "--world", str(world), "--state", str(state)]
    log = state / "log"
    process = launch(words if pace is None else [*words, "--pace", str(pace)], log)
    limit = time.monotonic() + TIMEOUT
    while time.monotonic() < limit:
        found = running(state)
        if found and found.pid == process.pid:
            return found
        if process.poll() is not None:
            if found:  # another one was faster
                return found
            raise SandboxError(f"the sandbox of {world} doesn't start: {_tail(log)}")
        time.sleep(POLL)
    process.kill()
    raise SandboxError(f"the sandbox of {world} isn't up after {TIMEOUT} s: {_tail(log)}")


def launch(words: Sequence[str], log: Path) -> Launched:
    """`python -m bfinfra.sandbox WORDS` as a process of its own, in a session of its own, that writes to the
    log.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, our own module
            [sys.executable, "-m", "bfinfra.sandbox", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**environment(), "PYTHONPATH": _path()},
        )
    threading.Thread(target=process.wait, daemon=True).start()  # so that it never stays behind as a zombie
    return process


def running(state: Path) -> Running | None:
    """The sandbox that runs on this state folder."""
    if not _held(state):
        return None
    try:
        data = json.loads((state / "endpoints.json").read_text())
    except (OSError, ValueError):
        return None
    if data.get("format_version") != FORMAT:
        return None
    return Running(
        int(data["pid"]),
        str(data["started"]),
        Path(data["ca_file"]),
        str(data["control"]),
        data["addresses"],
        data["env"],
        Path(data["files"]),
        state,
        data.get("clients", {}),
    )


def stop(state: Path) -> None:
    """End it, its state saved; nothing happens where none runs."""
    found = running(state)
    if found is None:
        return
    os.kill(found.pid, signal.SIGTERM)
    _await(lambda: not _held(state), f"the sandbox with process id {found.pid} doesn't end")


def reset(state: Path) -> None:
    """Set the world back to its beginning: a running one at once, one that doesn't run by dropping its
    state.
    """
    found = running(state)
    if found is None:
        for name in ("state.json", "endpoints.json", "env", "kubeconfig", "files.made"):
            (state / name).unlink(missing_ok=True)
        shutil.rmtree(state / "files", ignore_errors=True)
        return
    found.reset()


def _held(state: Path) -> bool:
    """Return whether a process holds the folder's lock."""
    try:
        with (state / "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def _await(done: Callable[[], bool], why: str) -> None:
    limit = time.monotonic() + TIMEOUT
    while not done():
        if time.monotonic() > limit:
            raise SandboxError(f"{why} within {TIMEOUT} s")
        time.sleep(POLL)


def environment() -> dict[str, str]:
    """Return the variables that a Python program needs to run, without any passwords of this environment."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in NEEDED or name.startswith(("LC_", "PYTHON", "COV"))
    }


def _path() -> str:
    """The folder from which the child imports this package."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(
        dict.fromkeys([here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    )


def _tail(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-800:] or "it says nothing"
