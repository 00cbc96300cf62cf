"""`bfinfra` as its users run it: a process of its own, on a sandbox that outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.worlds import Place

from bfinfra.cli import where
from bfinfra.sandbox import Running, start, stop

PATIENCE = 120  # seconds for a command


@dataclass
class Command:
    """A running command; `out` and `err` are files."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def end(self) -> int:
        """Its exit code, waited for."""
        return self.process.wait(PATIENCE)

    def outcome(self) -> dict[str, Any]:
        """What --output json printed."""
        text = self.out.read_text()
        return dict(json.loads(text)) if text.strip() else {}

    def said(self) -> str:
        """What it said to people."""
        return self.err.read_text()


class Desk:
    """A site, its sandbox and commands on it. `machine` is a state folder: another machine has another one."""

    def __init__(self, place: Place, folder: Path, sandbox: Running) -> None:
        self.place, self.folder, self.sandbox, self._count = place, folder, sandbox, 0

    def state(self, machine: str = "a") -> Path:
        return self.folder / f"machine-{machine}"

    def start(self, verb: str, *more: str, machine: str = "a") -> Command:
        """Start `bfinfra VERB SITE`."""
        self._count += 1
        out, err = (self.folder / f"{self._count}.{each}" for each in ("out", "err"))
        with out.open("wb") as to, err.open("wb") as aside:
            return Command(subprocess.Popen(
                self.words(verb, *more), stdin=subprocess.DEVNULL, stdout=to, stderr=aside, env=self.env(machine),
                preexec_fn=hearing,  # noqa: PLW1509 - it only sets a signal
            ), out, err)

    def words(self, verb: str, *more: str) -> list[str]:
        """The command line; --output is json where `more` says nothing else."""
        return [sys.executable, "-m", "bfinfra", verb, str(self.place.site), "--world", str(self.place.world), "--output", "json", *more]

    def env(self, machine: str) -> dict[str, str]:
        return {**os.environ, "XDG_STATE_HOME": str(self.folder / "xdg"), "BFINFRA_STATE_HOME": str(self.state(machine))}

    def run(self, verb: str, *more: str, machine: str = "a") -> Command:
        """Start it and wait for its end."""
        made = self.start(verb, *more, machine=machine)
        made.end()
        return made

    def lock(self, machine: str = "a") -> Path:
        """The lock's file."""
        return next(iter((self.state(machine) / "bfinfra").glob("*/lock")), self.state(machine) / "none")

    def journal(self, machine: str = "a") -> list[dict[str, Any]]:
        """The journal's lines."""
        file = self.lock(machine).with_name("journal.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def hearing() -> None:
    """SIGINT as on a terminal: what runs in the background is started deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def desk(place: Place, folder: Path, pace: float = 0) -> Iterator[Desk]:
    """A desk with the sandbox that `bfinfra --world` finds."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder / "xdg")
    try:
        state = where.state(place.world)
        yield Desk(place, folder, start(place.world, state, pace=pace))
        stop(state)
    finally:
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before


def until(done: Callable[[], object], what: str) -> None:
    """Wait for it."""
    limit = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < limit, f"waited in vain: {what}"
        time.sleep(0.005)
