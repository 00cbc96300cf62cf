"""`bfinfra watch` as a process, and whether its last line is what a check finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heard import SOON

from bfinfra.model.drift import Report
from bfinfra.render.drift import data

AGAIN = "it can't be made again: "


@dataclass
class Watcher:
    """`last`: its last report; `reports` counts them; `gaps`: seconds in which it followed nothing."""

    process: subprocess.Popen[str]
    last: Mapping[str, Any] | None = None
    reports: int = 0
    gaps: list[float] = field(default_factory=list)

    def read(self) -> None:
        """All lines, to the end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.last = found = json.loads(line)
            self.reports += 1
            if "not_followed" in found:
                self.gaps.append(found["not_followed"]["seconds"])

    def agrees(self, found: Report, within: float = SOON) -> None:
        """Wait until its last report says the same as this one. Raises AssertionError."""
        limit, wanted = time.monotonic() + within, words(found)
        while self.last is None or said(self.last) != wanted:
            ours = said(self.last) if self.last else Counter[str]()
            assert self.process.poll() is None, f"the watch ended with {self.process.returncode}"
            assert time.monotonic() < limit, (
                f"the watch alone: {[*(ours - wanted)]}; drift alone: {[*(wanted - ours)]}"
            )
            time.sleep(0.05)


@contextmanager
def watcher(site: Path, folder: Path, *words: str) -> Iterator[Watcher]:
    """The process, after its first report. What it prints for people is in folder/watch.log."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "bfinfra", "watch", str(site), "--output", "jsonl", *words]
    env = {**os.environ, "BFINFRA_STATE_HOME": str(folder / "state")}
    with (
        (folder / "watch.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env) as process,
    ):
        made = Watcher(process)
        threading.Thread(target=made.read, daemon=True).start()
        try:
            limit = time.monotonic() + SOON
            while made.last is None:
                assert process.poll() is None, (folder / "watch.log").read_text()
                assert time.monotonic() < limit, "no first report"
                time.sleep(0.05)
            yield made
        finally:
            process.terminate()


def said(report: Mapping[str, Any]) -> Counter[str]:
    """Everything that a report says of the servers now. Only the machine that saw a resource knows that it has
    vanished: where it can't be made again, others are told that alone.
    """
    return Counter(
        (
            *(word for each in report["findings"] for word in _found(each)),
            *(each["what"] for each in report["problems"]),
            *(f"{each['address']} can't be read" for each in report["unreadable"]),
            f"{report['agreed']} agree",
        )
    )


def _found(finding: Mapping[str, Any]) -> Iterator[str]:
    address, again = finding["address"], finding["why"].partition(AGAIN)[2]
    if again:
        yield from (f"{address}: {each}" for each in again.split("; "))
    else:
        cause = finding["cause"].replace("vanished", "missing")
        yield f"{address} {finding['field']} is {finding['now']!r}: {cause}"


def words(report: Report) -> Counter[str]:
    """The same, of a report at hand."""
    return said(json.loads(json.dumps(data(report))))
