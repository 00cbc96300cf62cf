"""The progress of an apply: events gathered into rows, without a clock or terminal of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import field

from bfinfra.model.errors import Problem
from bfinfra.model.events import Ended, Event, Progressed, Settling, Started, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.plan import Item, Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.units import bytes_short
from bfinfra.render.safe import safe
from bfinfra.render.values import duration

WINDOW = 10.0  # seconds over which a rate is measured


def again(problem: Problem) -> str:
    """Why a step is tried again: what failed, and the server's reason. An ending tells the whole problem."""
    return "looks again: " + ": ".join(safe(part) for part in (problem.what, problem.why) if part)


@dataclass(frozen=True)
class Row:
    """A running or waiting item: what it does now, how far a long step is (0..1 if known), since when."""

    key: Key
    doing: str
    share: float | None = None
    amount: str = ""
    since: float = 0.0


@dataclass
class _Running:
    since: float
    doing: str = "looking"
    marks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=512))
    progress: Done | None = None


class Progress:
    """A sink of events. `rows` and `waiting` hold the current state; `done` counts ended items."""

    def __init__(self, plan: Plan) -> None:
        self.items = {item.key: item for item in plan.items}
        self.ended: dict[Key, Ended] = {}
        self._running: dict[Key, _Running] = {}

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Started):
            self._running.setdefault(event.key, _Running(event.at))
        elif isinstance(event, Ended):
            self._running.pop(event.key, None)
            self.ended[event.key] = event
        elif isinstance(event, StepBegun):
            self._of(
                event
            ).doing = f"{event.number}/{max(event.number, self._steps(event.key))} {safe(event.title)}"
            self._of(event).since = event.at
        elif isinstance(event, StepEnded):
            self._step_ended(event)
        elif isinstance(event, Settling):
            self._of(event).doing = f"waits: {safe(event.why)}"
        elif isinstance(event, Progressed):
            self._progressed(event)

    def rows(self, now: float) -> tuple[Row, ...]:
        """The running items, in the order in which they started."""
        return tuple(self._row(key, running, now) for key, running in self._running.items())

    def waiting(self) -> tuple[tuple[Key, tuple[str, ...]], ...]:
        """The items that did not start, with what they wait for, and why if no field names that."""
        idle = (
            item
            for item in self.items.values()
            if item.steps and item.key not in self.ended and item.key not in self._running
        )
        return tuple((item.key, self._open(item)) for item in idle)

    def total(self) -> int:
        """The number of items of the plan."""
        return len(self.items)

    def _open(self, item: Item) -> tuple[str, ...]:
        left = [key for key in item.waits_for if key in self.items and key not in self.ended]
        return tuple(f"{key} ({item.because[key]})" if key in item.because else str(key) for key in left)

    def _steps(self, key: Key) -> int:
        return len(self.items[key].steps) if key in self.items else 0

    def _of(self, event: StepBegun | StepEnded | Settling | Progressed) -> _Running:
        return self._running.setdefault(event.key, _Running(event.at))

    def _step_ended(self, event: StepEnded) -> None:
        running = self._of(event)
        running.progress = None
        running.marks.clear()
        if event.again and event.problem:
            running.doing = again(event.problem)

    def _progressed(self, event: Progressed) -> None:
        running = self._of(event)
        if (
            running.progress is None
            or running.progress.what != event.progress.what
            or event.progress.done < running.progress.done
        ):
            running.marks.clear()
        running.progress = event.progress
        running.marks.append((event.at, event.progress.done))
        while len(running.marks) > 1 and running.marks[0][0] < event.at - WINDOW:
            running.marks.popleft()

    def _row(self, key: Key, running: _Running, now: float) -> Row:
        done = running.progress
        if done is None:
            return Row(key, running.doing, since=now - running.since)
        share = min(1.0, done.done / done.total) if done.total else None
        return Row(key, running.doing, share, amount(done, rate(running.marks)), now - running.since)


def rate(marks: deque[tuple[float, int]]) -> float:
    """Bytes a second over the window; 0 while unknown."""
    if len(marks) < 2 or marks[-1][0] <= marks[0][0]:
        return 0.0
    return (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])


def amount(done: Done, speed: float) -> str:
    """`disk-0.vmdk 1.2 GiB of 3.4 GiB, 48.0 MiB/s, 45s left`."""
    total = f" of {bytes_short(done.total)}" if done.total is not None else ""
    words = f"{safe(done.what)} {bytes_short(done.done)}{total}"
    if speed > 0:
        words += f", {bytes_short(speed)}/s"
        if done.total and done.done < done.total:
            words += f", {duration((done.total - done.done) / speed)} left"
    return words
