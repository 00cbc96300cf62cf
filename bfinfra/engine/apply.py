"""Applies a plan: each item is blocked, then runs, then waits until it is ready, then is done.

Items that do not depend on each other run in parallel.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Lock
from typing import Any

from bfinfra.deprecated import with_old_field
from bfinfra.engine import lost
from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.out_of_service import Service
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.readiness_wait import ReadinessWait, Verdict
from bfinfra.engine.recheck import moved
from bfinfra.engine.reconciler import Halted, Reconciler
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.errors import BfinfraError, NotYet, Problem, StillRunning
from bfinfra.model.events import Ended, Ending, Event, Sink, Started
from bfinfra.model.outcome import OutOfService
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key

TICK = 0.2  # seconds between two checks of the stop flag
POLLS = 4  # kinds whose readiness is checked in parallel
AGAIN = "run the apply again to continue"
GOOD = (Ending.DONE, Ending.UNCHANGED)
WENT = {
    Ending.FAILED: "failed",
    Ending.BLOCKED: "is blocked",
    Ending.STOPPED: "was stopped",
    Ending.WAITING: "is not ready yet",
}


@with_old_field("patience")
@dataclass(frozen=True)
class Options:
    """The options of an apply.

    `deadline`: seconds that each step of a resource and the wait after it may take, and to wait for a server
    that is away at most; None for the kind's own.
    `stop`: once it is set, no new step starts. `journal` gets each event before the run's own sink, from
    several threads; if it raises, the step does not run.
    """

    parallelism: int = 10
    deadline: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    stop: Flag = field(default_factory=Flag)
    settle: bool = True
    """Whether a resource is done only once it is ready; an adoption only writes marks."""
    journal: Sink = lambda _: None


class Apply:
    """Applies one plan once; `run()` returns how each item ended."""

    def __init__(  # noqa: PLR0913 - a run's whole input
        self,
        plan: Plan,
        desired: DesiredState,
        observed: ObservedState,
        kinds: Kinds,
        options: Options,
        sink: Sink,
    ) -> None:
        self._options, self._sink, self._speaking = options, sink, Lock()
        self._blocked = {item.key: item for item in plan.items}
        self._plan, self._items, self._lost = plan, dict(self._blocked), plan.lost
        self._running: dict[Future[bool], Item] = {}
        self._polling: dict[Future[dict[Key, Any]], str] = {}
        self._over: SimpleQueue[Future[Any]] = SimpleQueue()
        """Futures that ended and are not handled yet, so that the loop need not ask every running future."""
        most = float("inf") if options.deadline is None else options.deadline
        lasts = min(options.retry.lasts, most)
        retry = replace(options.retry, halt=options.stop, lasts=lasts, deadline=options.deadline)
        self._desired, self._observed, self._kinds, self._retry = desired, observed, kinds, retry
        self._reconciler = Reconciler(desired, observed, kinds, retry, self._tell)
        self._readiness = ReadinessWait(desired, observed, kinds, self._reconciler, retry, options.deadline)
        self._began: dict[Key, float] = {}
        self._service = Service(desired, observed, kinds)
        self.endings: dict[Key, Ended] = {}
        self.out_of_service: tuple[OutOfService, ...] = ()
        """What does not serve after a run that did not finish."""

    def run(self) -> Mapping[Key, Ended]:
        """Run until every item has ended, or until the stop flag is set and the running steps have
        finished.
        """
        turns = ThreadPoolExecutor(self._options.parallelism, thread_name_prefix="apply")
        # a pool of its own: a readiness check must not wait until a step ends
        polls = ThreadPoolExecutor(POLLS, thread_name_prefix="settle")
        try:
            while self._blocked or self._running or self._readiness or self._polling:
                if self._options.stop.is_set() and not self._running:
                    break
                self._start(turns, polls)
                self._collect(turns)
        finally:
            turns.shutdown()
            # a stopped run does not wait for readiness checks
            polls.shutdown(wait=not self._options.stop.is_set(), cancel_futures=True)
        for item in self._items.values():
            if item.key not in self.endings:
                self._end(item, stopped(item))
        if not self._options.stop.is_set():
            self._look_once_more()
            self._tell_lost()
        if unfinished := {key for key, ended in self.endings.items() if ended.ending not in GOOD}:
            self.out_of_service = self._service.lost(self._plan, unfinished, self._reconciler)
        return self.endings

    def _look_once_more(self) -> None:
        """Read once more what this run changed, and mark as failed what somebody else has changed since."""
        changed = [
            item
            for item in self._items.values()
            if item.steps and self.endings[item.key].ending is Ending.DONE
        ]
        found = moved(
            [item.key for item in changed],
            self._desired.wanted,
            self._observed,
            self._kinds,
            self._reconciler,
            self._retry,
        )
        for item in changed:
            if problem := found.get(item.key):
                self._end(item, Verdict(Ending.FAILED, problem=problem))

    def _tell_lost(self) -> None:
        """End what should go and isn't found as failed: nobody knows whether it is gone."""
        for key in self._lost:
            self._end(Item(key, Action.DELETE), Verdict(Ending.FAILED, problem=lost.problem(key)))

    def why_blocked(self, item: Item) -> str:
        """Return the reason for which an item waits; "" if it need not."""
        return next(
            (f"waits for {key}" for key in item.waits_for if key in self._items and key not in self.endings),
            "",
        )

    def _start(self, pool: ThreadPoolExecutor, polls: ThreadPoolExecutor) -> None:
        for item in list(self._blocked.values()):
            if verdict := self._broken(item):
                del self._blocked[item.key]
                self._end(item, verdict)
            elif not self.why_blocked(item) and not self._options.stop.is_set():
                del self._blocked[item.key]
                if item.held is None:
                    self._begin(item, pool)
                else:
                    self._end(item, Verdict(Ending.WAITING, problem=item.held))
        if not self._options.stop.is_set():
            for kind, keys in self._readiness.due(set(self._polling.values())):
                future = polls.submit(self._readiness.poll, kind, keys)
                self._polling[future] = kind
                future.add_done_callback(self._over.put)

    def _begin(self, item: Item, pool: ThreadPoolExecutor) -> None:
        self._began[item.key] = time.monotonic()
        if item.steps:
            self._tell(Started(at=time.time(), key=item.key, action=item.action))
            self._take_turn(item, pool)
        else:
            self._wait_for(item, final=True)

    def _wait_for(self, item: Item, *, final: bool, just_read: bool = False) -> None:
        if final and not self._options.settle:
            self._end(item, Verdict(Ending.DONE))
        elif final and (verdict := self._readiness.at_once(item.key)):
            self._end(item, verdict)
        else:
            self._readiness.add(item.key, final=final, just_read=just_read)

    def _collect(self, pool: ThreadPoolExecutor) -> None:
        pause = min(TICK, self._readiness.pause())
        if not (self._running or self._polling):
            self._options.stop.wait(pause if self._readiness else 0)
            return
        with contextlib.suppress(Empty):
            self._finish(self._over.get(timeout=pause), pool)
            while True:
                self._finish(self._over.get_nowait(), pool)

    def _finish(self, future: Future[Any], pool: ThreadPoolExecutor) -> None:
        if future in self._polling:
            self._polled(self._polling.pop(future), future.result(), pool)
        else:
            self._turned(self._running.pop(future), future)

    def _take_turn(self, item: Item, pool: ThreadPoolExecutor) -> None:
        future = pool.submit(self._reconciler.take, item)
        self._running[future] = item
        future.add_done_callback(self._over.put)

    def _turned(self, item: Item, future: Future[bool]) -> None:
        try:
            done = future.result()
            self._wait_for(item, final=done, just_read=done)
        except Halted:
            self._end(item, stopped(item))
        except BfinfraError as error:
            ending = Ending.WAITING if isinstance(error, StillRunning | NotYet) else Ending.FAILED
            self._end(item, Verdict(ending, problem=located(error.problems[0], item.key)))

    def _polled(self, kind: str, answers: dict[Key, Any], pool: ThreadPoolExecutor) -> None:
        verdicts, events = self._readiness.judge(kind, answers)
        for event in events:
            self._tell(event)
        for key, verdict in verdicts.items():
            item = self._items[key]
            if verdict.ending is None or (verdict.ending is Ending.DONE and item.steps and self._more(item)):
                self._take_turn(item, pool)
            else:
                self._end(item, verdict)

    def _more(self, item: Item) -> bool:
        """Return whether steps are left: a ready resource is done only if its observed state is up
        to date.
        """
        try:
            return bool(self._reconciler.left(item.key))
        except BfinfraError:
            return True  # the next attempt raises it again, and reports it

    def _broken(self, item: Item) -> Verdict | None:
        for key in item.waits_for:
            ended = self.endings.get(key)
            if ended and ended.ending not in GOOD and not self._needless(key, item):
                why = item.because.get(key)
                never = Problem(
                    f"{item.key} waits for {key}{f' ({why})' if why else ''}",
                    why=f"which {WENT[ended.ending]}",
                    next=AGAIN if ended.ending is Ending.STOPPED else "",
                )
                passing = ended.ending in (Ending.WAITING, Ending.STOPPED)
                return Verdict(ended.ending if passing else Ending.BLOCKED, problem=item.held or never)
        return None

    def _needless(self, key: Key, item: Item) -> bool:
        """Return whether an item need not wait for `key`: `key` waits for a file but exists, and the plan
        found this item up to date.
        """
        return item.held is None and self._items[key].held is not None

    def _end(self, item: Item, verdict: Verdict) -> None:
        assert verdict.ending is not None
        ending = Ending.UNCHANGED if verdict.ending is Ending.DONE and not item.steps else verdict.ending
        now = time.monotonic()
        seconds = now - self._began.get(item.key, now)
        ended = Ended(
            at=time.time(),
            key=item.key,
            action=item.action,
            ending=ending,
            seconds=seconds,
            note=verdict.note,
            problem=verdict.problem,
        )
        self.endings[item.key] = ended
        self._tell(ended)

    def _tell(self, event: Event) -> None:
        self._options.journal(event)
        with self._speaking:
            self._sink(event)


def stopped(item: Item) -> Verdict:
    """The verdict on an item that the run did not finish; the next apply continues it."""
    return Verdict(
        Ending.STOPPED, problem=Problem(f"{item.key} was not finished", why="the run was stopped", next=AGAIN)
    )


def located(problem: Problem, key: Key) -> Problem:
    """The problem, with the address of its resource."""
    return problem if str(key) in problem.what else replace(problem, what=f"{key}: {problem.what}")
