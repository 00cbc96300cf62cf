"""Waits until changed resources are ready. One bulk poll for each kind. A time-out means "still waiting",
never a failure.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.engine.reconciler import Reconciler
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.errors import BfinfraError, Problem, RemoteError
from bfinfra.model.events import Ending, Settling
from bfinfra.model.kind import Kind, Source
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key

FIRST_PAUSE, LATE, LONGEST_PAUSE, GROWTH = 0.1, 2.0, 5.0, 1.5  # seconds, seconds, seconds, factor
# share of the time waited by which a check may come later than LATE, up to LONGEST_PAUSE
SHARE = 0.1


@dataclass
class _Waiting:
    since: float
    final: bool
    just_read: bool
    why: str = ""


@dataclass(frozen=True)
class Verdict:
    """The result of waiting for an item; `ending` None means "ready for its next step"."""

    ending: Ending | None
    note: str = ""
    problem: Problem | None = None


class ReadinessWait:
    """The items that wait for readiness, and when to check each kind again."""

    def __init__(  # noqa: PLR0913 - a run's whole context
        self,
        desired: DesiredState,
        observed: ObservedState,
        kinds: Kinds,
        reconciler: Reconciler,
        retry: RetryPolicy,
        deadline: float | None,
    ) -> None:
        self._desired, self._observed, self._kinds, self._reconciler = desired, observed, kinds, reconciler
        self._retry, self._deadline = retry, deadline
        self._waiting: dict[Key, _Waiting] = {}
        self._pause: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, key: Key, *, final: bool, just_read: bool = False) -> None:
        """Wait for a resource. `final`: no steps are left; `just_read`: its state was read just now."""
        now = time.monotonic()
        self._waiting[key] = _Waiting(now, final, just_read)
        self._pause[key.kind], self._due[key.kind] = FIRST_PAUSE, now

    def at_once(self, key: Key) -> Verdict | None:
        """The verdict on a resource that needs no wait, else None: it is gone, its kind is ready once it
        exists, or it is only read and was found ready.
        """
        spec, state, kind = (
            self._desired.wanted.get(key),
            self._observed.states.get(key),
            self._kinds[key.kind],
        )
        done = state is None if spec is None else state is not None and type(kind).ready is Kind.ready
        if done:
            return Verdict(Ending.DONE)
        answer = kind.ready(spec, state) if isinstance(kind, Source) and spec and state else None
        return Verdict(Ending.DONE, answer.note) if answer and answer.status is Ready.READY else None

    def due(self, busy: set[str]) -> list[tuple[str, tuple[Key, ...]]]:
        """The kinds to check now, each with its waiting keys, without the `busy` ones."""
        by_kind: dict[str, list[Key]] = {}
        for key in self._waiting:
            by_kind.setdefault(key.kind, []).append(key)
        now = time.monotonic()
        return [
            (kind, tuple(keys))
            for kind, keys in by_kind.items()
            if kind not in busy and self._due[kind] <= now
        ]

    def pause(self) -> float:
        """Seconds until the next kind is due."""
        kinds = {key.kind for key in self._waiting}
        return max(0.005, min((self._due[kind] - time.monotonic() for kind in kinds), default=LONGEST_PAUSE))

    def poll(self, kind: str, keys: tuple[Key, ...]) -> dict[Key, Readiness | BfinfraError]:
        """Read these resources in one call and ask each whether it is ready. Runs in a worker thread."""
        unread, failures = (
            [key for key in keys if not self._waiting[key].just_read],
            dict[Key, Readiness | BfinfraError](),
        )
        try:
            if unread:
                self._retry.read(lambda: self._reconciler.look(kind, tuple(key.name for key in unread)))
        except BfinfraError as error:
            failures = dict.fromkeys(unread, error)
        return {key: failures[key] if key in failures else self._ask(key) for key in keys}

    def judge(
        self, kind: str, answers: Mapping[Key, Readiness | BfinfraError]
    ) -> tuple[dict[Key, Verdict], list[Settling]]:
        """The verdicts on these resources, and an event for each that still waits and has a new reason.
        Called by the run's own thread.
        """
        verdicts, events = {}, []
        for key, answer in answers.items():
            entry = self._waiting[key]
            entry.just_read = False
            verdict = self._verdict(key, entry, answer)
            if verdict is not None:
                verdicts[key] = verdict
                del self._waiting[key]
            elif isinstance(answer, Readiness) and answer.why != entry.why:
                entry.why = answer.why
                events.append(Settling(at=time.time(), key=key, why=answer.why))
        since = {key: entry.since for key, entry in self._waiting.items() if key.kind == kind}
        if since.keys() <= answers.keys():  # else some were added during the check: they are due at once
            now = time.monotonic()
            self._pause[kind] = min(
                self._pause[kind] * GROWTH,
                max(LATE, SHARE * (now - max(since.values(), default=now))),
                LONGEST_PAUSE,
            )
            last = min(since.values(), default=now) + self._limit(kind)
            self._due[kind] = min(now + self._pause[kind], last)  # never sleep past a deadline
        return verdicts, events

    def _verdict(self, key: Key, entry: _Waiting, answer: Readiness | BfinfraError) -> Verdict | None:
        if isinstance(answer, BfinfraError):
            return Verdict(Ending.FAILED, problem=answer.problems[0])
        if answer.status is Ready.FAILED:
            return Verdict(
                Ending.FAILED,
                problem=Problem(
                    f"{key} can't become ready", why=answer.why, next="correct the cause, then apply again"
                ),
            )
        if answer.status is Ready.READY:
            return Verdict(Ending.DONE if entry.final else None, answer.note)
        limit = self._limit(key.kind)
        if time.monotonic() - entry.since < limit:
            return None
        return Verdict(
            Ending.WAITING,
            problem=Problem(
                f"{key} is not ready after {limit:.0f} s",
                why=answer.why,
                next="apply again to wait longer; correct what it waits for, if that does not resolve itself",
            ),
        )

    def _limit(self, kind: str) -> float:
        return self._deadline if self._deadline is not None else self._kinds[kind].deadline

    def _ask(self, key: Key) -> Readiness:
        spec, state, final = (
            self._desired.wanted.get(key),
            self._observed.states.get(key),
            self._waiting[key].final,
        )
        if spec is None and final:
            return READY if state is None else waiting("being removed")
        if state is None:
            return READY if not final else failed("it was deleted while bfinfra waited for it")
        try:
            with provider_errors(str(key)):
                return self._kinds[key.kind].ready(spec, state)
        except RemoteError as error:
            return waiting(str(error.problems[0]))
