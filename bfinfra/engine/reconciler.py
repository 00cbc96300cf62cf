"""Reconciles one item: read, decide, run one step, again and again until nothing is left to do.

A crash, a lost answer and normal progress are the same case: the next read shows what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any

from bfinfra.engine.observe import Kinds, ObservedState, needs_of
from bfinfra.engine.plan import DesiredState, decide
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.engine.retry import LOOK, OUTAGE, RetryPolicy
from bfinfra.model.compare import UNFINISHED, Change
from bfinfra.model.errors import BfinfraError, Diverged, Problem, StillRunning, Unreachable
from bfinfra.model.events import Event, Progressed, StepBegun, StepEnded
from bfinfra.model.plan import Action, Item, agrees, plain
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step

Tell = Callable[[Event], None]
POWER = "power"
"""The field of machines that a power cycle changes in passing."""
UNCERTAIN = (*OUTAGE, StillRunning)
"""Errors that don't say whether the step was refused: what it began may still run."""
MOST_STEPS = 64  # an item with more steps than these and those of its plan never converges


class Halted(Exception):
    """The run was stopped between two steps."""


class Reconciler:
    """Runs the items' steps, in any number of threads, which share the observed state under one lock."""

    def __init__(
        self, desired: DesiredState, observed: ObservedState, kinds: Kinds, retry: RetryPolicy, tell: Tell
    ) -> None:
        self._desired, self._observed, self._kinds, self._retry, self._tell = (
            desired,
            observed,
            kinds,
            retry,
            tell,
        )
        self.lock = Lock()
        self._ran: dict[Key, list[Step]] = {}
        self._begun: dict[Key, Step] = {}
        """The last step that was started."""
        self.tried: set[Key] = set()
        """Resources of which a step was started. If one changed since, this run may have changed it and lost
        the answer.
        """

    def take(self, item: Item) -> bool:
        """Run steps. True: nothing is left to do. False: wait until it is ready, then call again. Raises
        BfinfraError where a step failed, StillRunning where it takes too long, Halted where the run was
        stopped.
        """
        while True:
            try:
                step = self._retry.look(lambda: self._once(item), lambda _: None)
            except UNCERTAIN:
                raise
            except BfinfraError as error:
                raise self._given_back(item.key, error) from error
            if step is None:
                return True
            if step.waits_ready:
                return False

    def _given_back(self, key: Key, error: BfinfraError) -> BfinfraError:
        """Run the way back of a step that took the resource from service. Return the error that says so."""
        ran = self._ran.get(key, [])
        back = next((step.way_back for step in reversed(ran) if step.way_back), None)
        if back is None or any(type(step) is type(back) for step in (*ran, self._begun[key])):
            return error
        problem, *others = error.problems
        try:
            self._run(key, back, len(ran) + 1)
            how = f"as before: {back.title()}"
        except BfinfraError as lost:
            how = f"it is still out of service, as this failed: {back.title()} ({lost.problems[0]})"
        why = "; ".join(part for part in (problem.why, how) if part)
        return BfinfraError(replace(problem, why=why), *others)

    def left(self, key: Key) -> tuple[Step, ...]:
        """The steps that are left, by the last read."""
        with self.lock:
            return decide(key, self._desired, self._observed, self._kinds)

    def look(self, kind: str, names: tuple[str, ...]) -> None:
        """Read some resources of a kind again. Raises RemoteError where that fails."""
        with self.lock:
            needs = needs_of(kind, self._kinds[kind], self._desired.wanted, self._observed)
        observation = self._kinds[kind].observe(
            {name: self._desired.wanted.get(Key(kind, name)) for name in names}, needs, include_unlisted=False
        )
        with self.lock:
            self._observed.take(kind, observation, names)
            self._forget_unmanaged(kind, names)
            blind = next(
                (why for name in names if (why := self._observed.why_unreadable(Key(kind, name)))), ""
            )
        if blind:
            raise Unreachable(f"{kind} can't be read", why=blind)

    def _forget_unmanaged(self, kind: str, names: tuple[str, ...]) -> None:
        """Forget the states of objects that have the name of a resource to be deleted but belong to others:
        the site's own object is gone.
        """
        for key in (Key(kind, name) for name in names):
            state = self._observed.states.get(key)
            if (
                state is not None
                and key not in self._desired.wanted
                and (state.mark is None or state.mark.site != self._desired.site)
            ):
                del self._observed.states[key]

    def _once(self, item: Item) -> Step | None:
        steps = self._guarded(item)
        if not steps:
            self.look(item.key.kind, (item.key.name,))
            steps = self.left(item.key)
        ran = self._ran.setdefault(item.key, [])
        self._check(item, steps, ran)
        if not steps:
            return None
        if self._retry.halt.is_set():
            raise Halted
        self.tried.add(item.key)
        self._run(item.key, steps[0], len(ran) + 1)
        ran.append(steps[0])
        return steps[0]

    def _guarded(self, item: Item) -> tuple[Step, ...]:
        """The steps for the first attempt without another read, if each of them fails safely should the state
        have changed since the survey; else ().
        """
        if item.key in self.tried or not item.steps[0].exclusive:
            return ()
        try:
            steps = self.left(item.key)
        except BfinfraError:
            return ()  # the states of other resources, read earlier, don't fit this one's
        return steps if steps and steps[0].exclusive else ()

    def _run(self, key: Key, step: Step, number: int) -> None:
        began, self._begun[key] = time.monotonic(), step
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
                    why="the next step would be the same",
                    next="look at the object: somebody else may be undoing the change",
                )
            )
        if len(ran) > MOST_STEPS + len(item.steps):
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
                first=item.key not in self.tried,
                wanted=self._desired.wanted.get(item.key) is not None,
            )
        ):
            raise Diverged(
                Problem(f"{item.key} changed after the plan was shown", why=difference, next="plan again")
            )


def _covers(announced: Any, change: Change) -> bool:
    """Return whether the plan announced this change, or a change of a field that contains it."""
    return agrees(announced, plain(change)) or change.field.startswith(f"{announced['field']}.")


def _beyond(item: Item, steps: tuple[Step, ...], *, first: bool, wanted: bool) -> str:
    """Return how the new steps exceed the announced ones, or ""."""
    worse = max((s.disruption for s in steps), key=list(Disruption).index)
    if list(Disruption).index(worse) > list(Disruption).index(item.disruption):
        return f"it would now need a {worse}; the plan announced {item.disruption}"
    if first and wanted and item.action is Action.UPDATE:
        announced = [plain(c) for c in item.changes]
        # another run of the site may be in the middle of the power cycle that was announced
        passing = (UNFINISHED, POWER) if item.disruption is Disruption.POWER_CYCLE else (UNFINISHED,)
        new = [
            c
            for s in steps
            for c in s.changes
            if c.field not in passing and not any(_covers(a, c) for a in announced)
        ]
        if new and item.changes:
            return "; ".join(
                f"{c.field} is {c.now}, wanted {c.wanted}, and the plan did not have that" for c in new
            )
    if first and wanted and any(s.destructive for s in steps) and not any(s.destructive for s in item.steps):
        return (
            f"it would now {next(s.title() for s in steps if s.destructive)}, which the plan did not announce"
        )
    return ""
