"""Progress in a pipe or a log: one plain line for each start, end or wait; long steps from time to time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from bfinfra.model.events import Ended, Ending, Event, Progressed, Settling, StepBegun, StepEnded
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.render.progress import again, amount, rate
from bfinfra.render.safe import safe
from bfinfra.render.summary import DONE, WORDS
from bfinfra.render.text import own
from bfinfra.render.values import clock, duration

PAUSE = 10.0  # seconds between two lines of one long step


class Lines:
    """A sink of events that writes lines. `write` takes one line without its end."""

    def __init__(self, plan: Plan, write: Callable[[str], None]) -> None:
        self._steps = {item.key: len(item.steps) for item in plan.items}
        self._write = write
        self._printed: dict[Key, float] = {}
        self._marks: dict[Key, deque[tuple[float, int]]] = {}

    def __call__(self, event: Event) -> None:
        """Write a line for the event, if it deserves one."""
        for line in self._lines(event):
            self._write(f"{clock(event.at)}  {line}")

    def _lines(self, event: Event) -> Iterator[str]:
        if isinstance(event, StepBegun):
            self._printed[event.key] = event.at
            self._marks.pop(event.key, None)
            yield (
                f"{safe(event.key)}: step {event.number} of "
                f"{max(event.number, self._steps.get(event.key, 0))}: {safe(event.title)}"
            )
        elif isinstance(event, StepEnded) and event.problem:
            words = again(event.problem) if event.again else f"failed: {safe(event.problem.what)}"
            yield f"{safe(event.key)}: {words}"
        elif isinstance(event, Settling):
            yield f"{safe(event.key)}: waits: {safe(event.why)}"
        elif isinstance(event, Progressed):
            yield from self._progressed(event)
        elif isinstance(event, Ended) and event.ending is not Ending.UNCHANGED:
            yield ended(event)

    def _progressed(self, event: Progressed) -> Iterator[str]:
        marks = self._marks.setdefault(event.key, deque(maxlen=256))
        if marks and event.progress.done < marks[-1][1]:
            marks.clear()
        marks.append((event.at, event.progress.done))
        if event.at - self._printed.setdefault(event.key, event.at) >= PAUSE:
            self._printed[event.key] = event.at
            yield f"{safe(event.key)}: {amount(event.progress, rate(marks))}"


def ended(event: Ended) -> str:
    """`tanzu_cluster/cluster-01: created in 4m 10s`, or how else it ended and why."""
    word = WORDS.get(event.ending) or DONE[event.action]
    why = f": {safe(own(event.key, event.problem.what))}" if event.problem else ""
    return f"{safe(event.key)}: {word} after {duration(event.seconds)}{why}"
