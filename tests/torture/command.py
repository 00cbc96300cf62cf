"""`bfinfra` as its users run it: a process of its own, on a sandbox that outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.worlds import Place

from bfinfra import worlds
from bfinfra.sandbox import Running, running, start, stop

PATIENCE = 120  # seconds for a command


class Stuck(AssertionError):
    """A command that did not end."""


@dataclass
class Command:
    """A running command; `out` and `err` are files."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def end(self) -> int:
        """Its exit code, waited for. Stuck where it does not end."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Stuck(f"not over after {PATIENCE} s: {self.output()}") from None

    def abort(self) -> None:
        """End it now; each thread's stack stands at the end of its output."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGABRT)  # PYTHONFAULTHANDLER writes the stacks
            self.process.wait(PATIENCE)

    def outcome(self) -> dict[str, Any]:
        """What --output json printed."""
        text = self.out.read_text()
        return dict(json.loads(text)) if text.strip() else {}

    def output(self) -> str:
        """Its output for people."""
        return self.err.read_text()


class Desk:
    """A site, its sandbox and commands on it. `machine` is a state folder: another machine has another
    one.
    """

    def __init__(self, place: Place, folder: Path, sandbox: Running, pace: float) -> None:
        self.place, self.folder, self.sandbox, self.pace, self._count = place, folder, sandbox, pace, 0

    def state(self, machine: str = "a") -> Path:
        return self.folder / f"machine-{machine}"

    def start(self, verb: str, *more: str, machine: str = "a") -> Command:
        """Start `bfinfra VERB SITE`."""
        self._count += 1
        out, err = (self.folder / f"{self._count}.{each}" for each in ("out", "err"))
        with out.open("wb") as to, err.open("wb") as aside:
            return Command(
                subprocess.Popen(
                    self.words(verb, *more),
                    stdin=subprocess.DEVNULL,
                    stdout=to,
                    stderr=aside,
                    env=self.env(machine),
                    preexec_fn=hearing,  # noqa: PLW1509 - it only sets a signal
                ),
                out,
                err,
            )

    def words(self, verb: str, *more: str) -> list[str]:
        """The command line; --output is json where `more` says nothing else."""
        return [
            sys.executable,
            "-m",
            "bfinfra",
            verb,
            str(self.place.site),
            "--world",
            str(self.place.world),
            "--output",
            "json",
            *more,
        ]

    def env(self, machine: str) -> dict[str, str]:
        return {
            **os.environ,
            "XDG_STATE_HOME": str(self.folder / "xdg"),
            "BFINFRA_STATE_HOME": str(self.state(machine)),
        }

    def run(self, verb: str, *more: str, machine: str = "a") -> Command:
        """Start it and wait for its end."""
        made = self.start(verb, *more, machine=machine)
        made.end()
        return made

    def lock(self, machine: str = "a") -> Path:
        """The lock's file: the newest, as a sandbox that was reset is another one."""
        locks = (self.state(machine) / "bfinfra").glob("**/lock")
        return max(locks, key=lambda each: each.stat().st_mtime_ns, default=self.state(machine) / "none")

    def journal(self, machine: str = "a") -> list[dict[str, Any]]:
        """The lines of all journals, oldest first: a sandbox that was reset has a journal of its own."""
        files = (self.state(machine) / "bfinfra").glob("**/journal.jsonl")
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return sorted(lines, key=lambda line: line["at"])


def stuck(at: Desk, commands: Mapping[str, Command]) -> Stuck:
    """Commands by machine, of which one did not end: all of them end here, and so does the sandbox, for their
    stacks.
    """
    report = [
        (
            f"{machine}: {each.abort() or each.process.returncode}\n{each.out.read_text()}\n{each.output()}"
            f"\n{json.dumps(at.journal(machine), indent=1)}"
        )
        for machine, each in commands.items()
    ]
    os.kill(at.sandbox.pid, signal.SIGABRT)
    until(lambda: running(at.sandbox.state) is None, "the sandbox's end")
    report.append((at.sandbox.state / "log").read_text(errors="replace"))
    at.sandbox = start(at.place.world, at.sandbox.state, pace=at.pace)
    with tempfile.NamedTemporaryFile("w", prefix="bfinfra-stuck-", suffix=".txt", delete=False) as file:
        file.write("\n\n".join(report))
    return Stuck(f"not over after {PATIENCE} s; stacks, journals and the sandbox's log: {file.name}")


def hearing() -> None:
    """SIGINT as on a terminal: what runs in the background is started deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def desk(place: Place, folder: Path, pace: float = 0) -> Iterator[Desk]:
    """A desk with the sandbox that `bfinfra --world` finds."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ |= {"XDG_STATE_HOME": str(folder / "xdg"), "PYTHONFAULTHANDLER": "1"}
    try:
        state = worlds.state(place.world)
        yield Desk(place, folder, start(place.world, state, pace=pace), pace)
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
