"""One item's turn: look – decide – run one step, again and again until nothing is left to do.

A crash, a lost answer and plain progress are the same case: the next look tells what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

from bfinfra.engine.observe import Kinds, ObservedState, needs_of
from bfinfra.engine.plan import DesiredState, decide
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.engine.retry import LOOK, RetryPolicy
from bfinfra.model.compare import UNFINISHED, Change
from bfinfra.model.errors import BfinfraError, Diverged, Problem, Unreachable
from bfinfra.model.events import Event, Progressed, StepBegun, StepEnded
from bfinfra.model.plan import Action, Item, agrees, derive, plain
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step

Tell = Callable[[Event], None]
MOST_STEPS = 64  # an item that is still not done by then goes in circles


class Halted(Exception):
    """The run was stopped between two steps."""


class Reconciler:
    """Takes items' turns, in any number of threads; shares the seen world with everybody under one lock."""

    def __init__(
        self, wish: DesiredState, world: ObservedState, kinds: Kinds, patience: RetryPolicy, tell: Tell
    ) -> None:
        self._wish, self._world, self._kinds, self._patience, self._tell = wish, world, kinds, patience, tell
        self.lock = Lock()
        self._ran: dict[Key, list[Step]] = {}
        self._tried: set[Key] = set()
        """Those of which a step was begun: whatever moved since then, we may have moved it ourselves, the
        answer lost.
        """

    def take(self, item: Item) -> bool:
        """True: nothing is left to do. False: settle first, then take the next turn. BfinfraError: it failed;
        Halted: it may go no further.
        """
        while True:
            step = self._patience.look(lambda: self._once(item), lambda _: None)
            if step is None:
                return True
            if step.settles:
                return False

    def left(self, key: Key) -> tuple[Step, ...]:
        """What is left to do, on what was last seen."""
        with self.lock:
            return decide(key, self._wish, self._world, self._kinds)

    def look(self, kind: str, names: tuple[str, ...]) -> None:
        """See some resources of a kind again. RemoteError where that can't be done."""
        with self.lock:
            needs = needs_of(kind, self._kinds[kind], self._wish.wanted, self._world)
        seen = self._kinds[kind].observe(
            {name: self._wish.wanted.get(Key(kind, name)) for name in names}, needs, include_unlisted=False
        )
        with self.lock:
            self._world.take(kind, seen, names)
            self._leave_strangers(kind, names)
            blind = next((why for name in names if (why := self._world.why_unreadable(Key(kind, name)))), "")
        if blind:
            raise Unreachable(f"{kind} can't be read", why=blind)

    def _leave_strangers(self, kind: str, names: tuple[str, ...]) -> None:
        """What stands under the name of something that goes, and isn't ours: ours is gone, and theirs is not
        looked at.
        """
        for key in (Key(kind, name) for name in names):
            state = self._world.states.get(key)
            if (
                state is not None
                and key not in self._wish.wanted
                and (state.mark is None or state.mark.site != self._wish.site)
            ):
                del self._world.states[key]

    def _once(self, item: Item) -> Step | None:
        steps = self._guarded(item)
        if not steps:
            self.look(item.key.kind, (item.key.name,))
            steps = self.left(item.key)
        ran = self._ran.setdefault(item.key, [])
        self._check(item, steps, ran)
        if not steps:
            return None
        if self._patience.halt.is_set():
            raise Halted
        self._tried.add(item.key)
        self._run(item.key, steps[0], len(ran) + 1)
        ran.append(steps[0])
        return steps[0]

    def _guarded(self, item: Item) -> tuple[Step, ...]:
        """What is left where the survey was look enough: before the first step, once, if that fails should
        the world have moved since.
        """
        if item.key in self._tried or not item.steps[0].exclusive:
            return ()
        try:
            steps = self.left(item.key)
        except BfinfraError:
            return ()  # what was seen of others since then doesn't go with what was seen of it
        return steps if steps and steps[0].exclusive else ()

    def _run(self, key: Key, step: Step, number: int) -> None:
        began = time.monotonic()
        self._tell(StepBegun(at=time.time(), key=key, title=step.title(), number=number))
        problem: Problem | None = Problem("interrupted")
        again = False
        try:
            with provider_errors(str(key)):
                self._kinds[key.kind].run(
                    step, lambda done: self._tell(Progressed(at=time.time(), key=key, progress=done))
                )
            problem = None
        except BfinfraError as error:
            problem, again = error.problems[0], isinstance(error, LOOK)
            raise
        finally:
            self._tell(
                StepEnded(
                    at=time.time(),
                    key=key,
                    title=step.title(),
                    number=number,
                    seconds=time.monotonic() - began,
                    problem=problem,
                    again=again,
                )
            )

    def _check(self, item: Item, steps: tuple[Step, ...], ran: list[Step]) -> None:
        if (
            steps
            and ran
            and steps[0] == ran[-1]
            and (ran[-2:-1] == ran[-1:] or steps[0].destructive or steps[0].disruption is not Disruption.NONE)
        ):
            raise BfinfraError(
                Problem(
                    f"{item.key}: {steps[0].title()} ran, but the server does not show the change",
                    why="the same step would be the next one again",
                    next="look at the object; another writer may be undoing it",
                )
            )
        if len(ran) > MOST_STEPS:
            raise BfinfraError(
                Problem(
                    f"{item.key} is still not done after {len(ran)} steps",
                    next="report this; nothing more is tried",
                )
            )
        if steps and (
            difference := _beyond(
                item,
                steps,
                first=item.key not in self._tried,
                wanted=self._wish.wanted.get(item.key) is not None,
            )
        ):
            raise Diverged(
                Problem(f"{item.key} moved after the plan was shown", why=difference, next="plan again")
            )


def _covers(announced: Any, change: Change) -> bool:
    """Whether an announced change is this one, or of all that the changed field is part of."""
    return agrees(announced, plain(change)) or change.field.startswith(f"{announced['field']}.")


def _beyond(item: Item, steps: tuple[Step, ...], *, first: bool, wanted: bool) -> str:
    """In what the fresh steps go beyond the announced ones, or ""."""
    worse = max((s.disruption for s in steps), key=list(Disruption).index)
    if list(Disruption).index(worse) > list(Disruption).index(item.disruption):
        return f"it would now mean a {worse}, announced was {item.disruption}"
    if first and wanted and item.action is Action.UPDATE:
        announced = [plain(c) for c in item.changes]
        new = [
            c
            for s in steps
            for c in s.changes
            if c.field != UNFINISHED and not any(_covers(a, c) for a in announced)
        ]
        if new and item.changes:
            return "; ".join(f"{c.field} is {c.now}, wanted {c.wanted}, and was not in the plan" for c in new)
    if first and wanted and any(s.destructive for s in steps) and not any(s.destructive for s in item.steps):
        return f"it would now {next(s.title() for s in steps if s.destructive)}, which was not announced"
    if first and derive(object(), None, steps) is Action.REPLACE and item.action is not Action.REPLACE:
        return f"it would now be replaced, announced was {item.action}"
    return ""
