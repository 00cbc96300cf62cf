"""What a part of script/torture gets and gives: how much to try, and figures with their counts."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from peers.found import NotUp, Peers, find

T = TypeVar("T")


@dataclass
class Count:
    """One line of a part's figures: what was `tried`, how often; `broken` says each trial that did not hold;
    `figures` what else was counted.
    """

    what: str
    tried: int = 0
    broken: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)

    @contextlib.contextmanager
    def trial(self, name: str) -> Iterator[None]:
        """One more; broken where it raises anything."""
        self.tried += 1
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, this trial did not hold, and the others go on
            self.broken.append(f"{name}: {type(error).__name__}: {error}"[:2000])

    @contextlib.contextmanager
    def uncounted(self) -> Iterator[None]:
        """What all trials of the line stand on: broken where that raises, and the other lines go on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as in a trial
            self.tried += 1
            self.broken.append(f"before the next trial: {type(error).__name__}: {error}"[:2000])

    def add(self, figure: str, number: float) -> None:
        """Add to a figure."""
        before = self.figures.get(figure, 0)
        assert isinstance(before, int | float)
        self.figures[figure] = before + number

    def take(self, other: Count) -> None:
        """Add what another process counted of the same line."""
        self.tried += other.tried
        self.broken += other.broken
        for name, number in other.figures.items():
            assert isinstance(number, int | float)
            self.add(name, number)


def spread(
    work: Callable[[list[T], Effort], list[Count]],
    trials: Sequence[T],
    effort: Effort,
    processes: int = 3,
    shares: int = 0,
) -> list[Count]:
    """What `work` counts of the trials, each share of them in a folder of its own; a line's counts are added
    up.

    `shares`: as many as processes, or more where some take much longer than others: who is done takes the
    next. What each counted goes to standard error at once.
    """
    context, shares = multiprocessing.get_context("spawn"), shares or processes
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        parts = [
            pool.submit(
                _apart, work, list(trials[n::shares]), replace(effort, folder=effort.folder / f"share-{n}")
            )
            for n in range(shares)
        ]
        lines: dict[str, Count] = {}
        for done, part in enumerate(as_completed(parts), 1):
            for count in part.result():
                failures = [
                    f"{done}/{len(parts)} {count.what}: {count.tried - len(count.broken)} of {count.tried}",
                    *(f"BROKEN {each}" for each in count.broken),
                ]
                sys.stderr.write("".join(f"       {line}\n" for line in failures))
                lines.setdefault(count.what, Count(count.what)).take(count)
    return [lines[what] for what in sorted(lines)]


def _apart(work: Callable[[list[T], Effort], list[Count]], trials: list[T], effort: Effort) -> list[Count]:
    """In another process, with a state folder of its own."""
    effort.folder.mkdir(exist_ok=True)
    os.environ["BFINFRA_STATE_HOME"] = str(effort.folder / "state")
    return work(trials, effort)


@dataclass(frozen=True)
class Effort:
    """`share`: only as much as CI has time for. Chance comes from `seed` alone. `folder`: the part's own,
    empty. `only`: see `wants`. `lasts`: see `seconds`.
    """

    share: bool
    seed: int
    folder: Path
    only: str = ""
    lasts: int = 0

    def wants(self, what: str) -> bool:
        """Whether a line is asked for: all are, but for --only TEXT those whose `what` has the text."""
        return self.only in what

    def some(self, everything: Sequence[T], share: int) -> list[T]:
        """Everything, or a share of so many, drawn by the seed."""
        if not self.share or len(everything) <= share:
            return list(everything)
        return [everything[i] for i in sorted(self.chance("some").sample(range(len(everything)), share))]

    def number(self, whole: int, share: int) -> int:
        """How often to try."""
        return share if self.share else whole

    def seconds(self, whole: int, share: int) -> int:
        """How long a trial takes that lasts; --seconds says something else."""
        return self.lasts or self.number(whole, share)

    def chance(self, what: str) -> random.Random:
        """Numbers that are the same for the same seed."""
        return random.Random(f"{self.seed} {what}")

    @cached_property
    def peers(self) -> Peers | None:
        """The real peers, where script/peers has started them."""
        try:
            return find()
        except NotUp:
            return None
