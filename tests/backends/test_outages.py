"""When a server that is away is asked again."""

from __future__ import annotations

import contextlib
import time

import httpx2
import pytest

from bfinfra.backends.outages import FIRST, LONGEST_PAUSE, OVER, Outages
from bfinfra.model.errors import Busy, Unreachable

SERVER = "vc.small.test:443"


class Server:
    """Refuses each connection; `sent`: when, by a clock that the test turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.sent: list[float] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.outages = Outages(90.0, self.rest)

    def rest(self, seconds: float) -> None:
        self.now += seconds

    def asked(self) -> bool:
        """One request; whether it left."""
        before = len(self.sent)
        with contextlib.suppress(Unreachable), self.outages.asking(SERVER, "/sdk", writing=False):
            self.sent.append(self.now)
            raise Unreachable("refused", server=SERVER, met=False)
        return len(self.sent) > before


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_a_server_that_never_answered_is_asked_for_some_seconds_and_then_left_alone(server: Server) -> None:
    while server.asked():
        assert server.now < 100 + OVER
    assert server.sent[-1] - server.sent[0] <= FIRST
    count = len(server.sent)
    for _ in range(10):  # each kind and each resource that comes later
        server.now += LONGEST_PAUSE / 20
        assert not server.asked()
    assert len(server.sent) == count


def test_later_it_may_be_asked_once_more(server: Server) -> None:
    while server.asked():
        pass
    server.now += LONGEST_PAUSE
    assert server.asked()
    assert not server.asked()


@pytest.mark.parametrize("seconds", [7, 20])
def test_a_server_that_names_a_time_is_asked_after_exactly_that(seconds: int, server: Server) -> None:
    busy = httpx2.Response(503, headers={"retry-after": f"{seconds}"})
    for _ in range(2):
        with contextlib.suppress(Busy), server.outages.asking(SERVER, "/sdk", writing=False) as answer:
            server.sent.append(server.now)
            answer(busy)
    assert server.sent == [100, 100 + seconds]
