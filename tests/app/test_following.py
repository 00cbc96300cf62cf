"""How a kind of object in a cluster is followed, when the cluster's answers break off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from bfinfra.app import following
from bfinfra.app.following import Arrivals, Stream
from bfinfra.backends.kubernetes.errors import NotServed
from bfinfra.model.errors import RemoteError, Unanswered, Unreachable

AWAY = Unreachable("pods can't be read", server="c", why="connection refused")
BROKEN_OFF = Unanswered("pods can't be read", server="c", why="connection reset")
PAUSES: list[int] = []
"""After how many failures it asked for a pause."""
STARTED, NEVER_STARTED = "started", "not started"


class Script:
    """A cluster's answers, one after the other; a wait that broke off leaves it started or not. Once they have
    all been given, nothing is followed any more.
    """

    cluster, kind = "c", "Pod"

    def __init__(self, stream: Stream, answers: Iterable[tuple[str, Any, float, str]]) -> None:
        self._stream, self._answers = stream, [*answers]
        self.started, self.left = False, False

    def start(self) -> None:
        self._next("start")
        self.started = True

    def wait(
        self, seconds: int, take: Callable[[dict[str, Any]], None], *, begun: Callable[[], None]
    ) -> None:
        if self._answers[0][1] is not AWAY:
            begun()
        self._next("wait")

    def leave(self) -> None:
        self.left = True

    def _next(self, call: str) -> None:
        expected, error, lasts, after = self._answers.pop(0)
        assert call == expected
        if not self._answers:
            self._stream.over.set()
        time.sleep(lasts)
        if error:
            self.started = after == STARTED
            raise error


def followed(monkeypatch: pytest.MonkeyPatch, *answers: tuple[str, Any, float, str]) -> list[Arrivals]:
    """What arrives of these answers. A pause takes a hundredth of its time."""

    def pause(failures: int) -> float:
        PAUSES.append(failures)
        return 0.01 * 2.0 ** (failures - 1)

    PAUSES.clear()
    monkeypatch.setattr(following, "pause", pause)
    stream = Stream("demo")
    stream.of_cluster(Script(stream, answers))  # type: ignore[arg-type]  # as much as it calls
    every = [stream.arrived.get() for _ in range(stream.arrived.qsize())]
    return [each for each in every if isinstance(each, Arrivals)]


def told(arrived: list[Arrivals]) -> list[bool]:
    """Of each gap, whether it is over."""
    return [gap.over for each in arrived for gap in each.gaps]


START = ("start", None, 0.0, STARTED)
WAITED = ("wait", None, 0.0, STARTED)


def broken(
    lasts: float = 0.0, after: str = STARTED, error: RemoteError = BROKEN_OFF
) -> tuple[str, Any, float, str]:
    """A wait that breaks off after so many seconds."""
    return ("wait", error, lasts, after)


def test_one_that_was_told_as_lost_is_told_as_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = followed(monkeypatch, START, broken(), broken(), START, WAITED)
    assert told(arrived) == [False, True]
    assert arrived[-1].clusters, "what changed meanwhile is read"


def test_one_that_breaks_off_at_once_again_and_again_is_told_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    again = (broken(0, NEVER_STARTED), START) * 4
    assert told(followed(monkeypatch, START, *again, WAITED)) == [True, *(False, True) * 3]


def test_one_whose_answers_a_proxy_ends_is_followed_from_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert told(followed(monkeypatch, START, *(broken(0.05),) * 8, WAITED)) == []


def test_an_outage_that_comes_later_begins_with_short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    out = (broken(0, NEVER_STARTED, AWAY), *(("start", AWAY, 0.0, NEVER_STARTED),) * 3, START)
    followed(monkeypatch, START, *out, broken(0.2), *out, broken(0.2), *out, WAITED)
    assert max(PAUSES) == 5, "it goes on doubling otherwise"


def test_a_type_that_is_gone_after_a_gap_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ("start", NotServed("pods", server="c"), 0.0, NEVER_STARTED)
    assert told(followed(monkeypatch, START, broken(), broken(), gone)) == [False, True]
