"""Runs many inputs through a check in this process: none may raise, hang, take much memory, or leave anything
behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from bad_input.memory import Taken
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

LONGEST = (
    5.0  # seconds of the processor for one input: on the clock a busy machine would hang, not the product
)
ASLEEP = 60.0  # seconds on the clock, for what hangs without working
SHRINK = True  # look for the smallest input that breaks in the same way
MOST = 500 << 20  # bytes beyond what the process held before the first


@dataclass
class Found:
    """`broken`: the smallest input of each way to break; `slowest` in seconds of the processor; `peak` in
    bytes, beyond what the process held before.
    """

    tried: int = 0
    broken: list[str] = field(default_factory=list)
    slowest: float = 0.0
    peak: int = 0
    tally: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.tally[what] = self.tally.get(what, 0) + 1


class Hung(BaseException):
    """An input took longer than it may; nothing that catches every Exception catches this."""


def fuzz(
    inputs: Any, check: Callable[[Any, Found], None], times: int, seed: int, untouched: tuple[Path, ...] = ()
) -> Found:
    """`check` each of so many inputs. `untouched`: folders in which nothing may appear or change."""
    found, memory = Found(), Taken()
    before = {folder: _state(folder) for folder in untouched}

    @seeded(seed)
    @settings(
        max_examples=times,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, *([Phase.shrink] if SHRINK else [])],
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(inputs)
    def run(data: Any) -> None:
        found.tried += 1
        began = time.process_time()
        with _bounded():
            check(data, found)
        found.slowest = max(found.slowest, time.process_time() - began)
        found.peak = max(found.peak, memory.peak())
        assert found.peak < MOST, f"{found.peak >> 20} MiB of memory"
        for folder, held in before.items():
            assert _state(folder) == held, f"something was written in {folder.name}"

    try:
        with warnings.catch_warnings(action="ignore"):  # hypothesis about the size of what it shows
            run()
    except (Exception, Hung) as error:  # noqa: BLE001 - whatever the product lets out is a find
        notes = "; ".join(getattr(error, "__notes__", ()))
        found.broken.append(f"{type(error).__name__}: {error}; {notes}"[:2000])
    return found


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    def late(_number: int, _frame: FrameType | None) -> None:
        raise Hung(f"longer than {LONGEST:g} s")

    before = signal.signal(signal.SIGALRM, late), signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_REAL, ASLEEP)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGPROF, before[1])


def _state(folder: Path) -> list[tuple[str, int, int]]:
    """Every name below a folder, with its size and time."""
    if not folder.exists():
        return []
    return sorted(
        (entry.path, entry.stat(follow_symlinks=False).st_size, entry.stat(follow_symlinks=False).st_mtime_ns)
        for entry in _below(folder)
    )


def _below(folder: Path) -> Iterator[os.DirEntry[str]]:
    for entry in os.scandir(folder):
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path))
