"""The servers of a run that are away, known to all its threads: one request asks such a server again, the
others wait for its answer.

Without it each thread asks for itself: a vCenter that answers 503 got 740 requests from one plan.
"""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus

import httpx2

from bfinfra.model import waits
from bfinfra.model.errors import Busy, RemoteError, Unanswered, Unreachable
from bfinfra.model.pauses import pause
from bfinfra.model.records import dataclass

FIRST = 3.0  # seconds that requests wait for a server that has not answered in this run
SHORT_PAUSE, FIRST_PAUSE, LONGEST_PAUSE = 0.5, 0.5, 10.0  # seconds between two requests to a server
LONGEST_ASKED = 60.0  # seconds; a longer Retry-After is cut to this
OTHERS_WAIT = 10.0  # seconds for which one request is waited for; then another asks, too
OVER = 30.0  # seconds without a request after which a failure begins another outage
SAID = 3.0  # seconds after which somebody is told
STATUSES = frozenset({429, 500, 502, 503, 504})
GROUPED = frozenset({"api", "apis", "rest"})  # first parts of paths whose second part names the API


@dataclass
class _Outage:
    """`since`, `last`, `due`: when it began, when the server was last asked, when it may be asked again; by
    the monotonic clock. `failures`: in a row, of the requests that asked. `asked`: when the request was sent
    that asks now.
    """

    server: str
    api: str
    error: RemoteError
    since: float
    last: float
    due: float = 0.0
    failures: int = 0
    asked: float | None = None


@dataclass
class _Request:
    """`about`: the outage that it asks about."""

    server: str
    api: str
    writing: bool
    began: float = 0.0
    about: _Outage | None = None


class Outages:
    """Safe to use from several threads. `lasts`: seconds of an outage for which requests wait; with 0 none
    does, and nothing is remembered. `sleep` takes seconds; `check` raises if the run was asked to end.
    """

    def __init__(
        self,
        lasts: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.check = check
        self._lasts, self._sleep = lasts, sleep
        self._away: dict[tuple[str, str], _Outage] = {}
        self._answered: dict[str, float] = {}
        self._running: dict[int, _Request] = {}
        self._changed = threading.Condition()

    def met(self, server: str) -> bool:
        """Return whether the server has answered in this run, with whatever."""
        return server in self._answered

    def waiting(self) -> dict[str, str]:
        """The servers that requests wait for since a while, and why."""
        now, found = time.monotonic(), dict[str, str]()
        with self._changed:
            for outage in self._away.values():
                left = outage.since + self._lasting(outage) - now
                if left > 0 and max(now, outage.due) - outage.since >= SAID:
                    why = outage.error.problems[0]
                    found.setdefault(
                        outage.server, f"{why.why or why.what}; asked again for {left:.0f} s at most"
                    )
            for request in self._running.values():
                if now - max(request.began, self._answered.get(request.server, request.began)) >= SAID:
                    found.setdefault(request.server, "a request is not answered yet")
        return found

    @contextlib.contextmanager
    def asking(self, server: str, path: str, *, writing: bool) -> Iterator[Callable[[httpx2.Response], None]]:
        """While the block sends a request. It gives the response to what is yielded, or raises.

        Before, it waits for its turn. Raises RemoteError where the server is away and isn't asked now.
        """
        request = _Request(server, _api(path), writing=writing)
        if self._lasts:
            request.about = self._turn(request)
        request.began = time.monotonic()
        with self._changed:
            self._running[id(request)] = request
        try:
            yield lambda response: self._answer(request, response)
        except (Unreachable, Unanswered) as error:
            self._failed(request, error)
            raise
        finally:
            with self._changed:
                del self._running[id(request)]
            if request.about is not None:
                self._asked(request.about)

    def _turn(self, request: _Request) -> _Outage | None:
        """Wait until the request may be sent. The outage that it asks about, if any."""
        with self._changed:
            outage = self._of(request)
            if outage is None or not self._others(request, outage):
                return None
            now = time.monotonic()
            wait = max(0.0, outage.due - now)
            spent = self._spent(outage, now) and (wait or outage.asked is not None)
            if spent or wait > waits.left():
                raise self._known(outage)
            if not request.writing:
                outage.asked = now + wait
        with contextlib.ExitStack() as undone:
            undone.callback(self._asked, outage)
            if wait:
                self._sleep(wait)
            self.check()
            undone.pop_all()
        return outage

    def _asked(self, outage: _Outage) -> None:
        """Nobody asks about the outage any more; another may."""
        with self._changed:
            outage.asked = None
            self._changed.notify_all()

    def _others(self, request: _Request, outage: _Outage) -> bool:
        """Wait for the request that asks now. Returns whether the server is still away, or raises the error
        of that request.
        """
        failures = outage.failures
        while outage.asked is not None and time.monotonic() - outage.asked < OTHERS_WAIT:
            self._changed.wait(min(OTHERS_WAIT, waits.left()))
            self.check()
            if self._of(request) is None:
                return False
            if outage.failures > failures or not waits.left():
                raise self._known(outage)
        return True

    def _of(self, request: _Request) -> _Outage | None:
        """The outage of the request's API; or of another of the server, as long as nothing there has answered
        since it began.
        """
        if (own := self._away.get((request.server, request.api))) is not None:
            return own
        answered = self._answered.get(request.server, float("-inf"))
        return next(
            (o for o in self._away.values() if o.server == request.server and o.since > answered), None
        )

    def _spent(self, outage: _Outage, now: float) -> bool:
        return max(now, outage.due) - outage.since > self._lasting(outage)

    def _lasting(self, outage: _Outage) -> float:
        """Seconds for which requests wait for the server."""
        return min(FIRST, self._lasts) if _unmet(outage.error) else self._lasts

    @staticmethod
    def _length(outage: _Outage) -> float:
        """Seconds from the begin of the outage until the server may be asked again."""
        return max(time.monotonic(), outage.due) - outage.since

    def _known(self, outage: _Outage) -> RemoteError:
        """The error of the request that asked last, for one that is not sent."""
        error = outage.error
        known = type(error).__new__(type(error), *error.args)  # a copy: each thread adds its own traceback
        vars(known).update(vars(error), away=self._length(outage))
        return known

    def _answer(self, request: _Request, response: httpx2.Response) -> None:
        status = response.status_code
        away = status in STATUSES and not request.writing and not _speaks(response)
        with self._changed:
            self._answered[request.server] = (
                self._answered.get(request.server, float("-inf")) if away else time.monotonic()
            )
            if not away:
                self._away.pop((request.server, request.api), None)
                return
        after = response.headers.get("retry-after", "")
        error = Busy(
            "the server can't serve requests now",
            server=request.server,
            why=f"it answers {status} {HTTPStatus(status).phrase}",
            retry_after=min(float(after), LONGEST_ASKED) if re.fullmatch(r"\d{1,5}", after) else None,
        )
        self._failed(request, error)
        if error.away is not None:
            response.close()
            raise error

    def _failed(self, request: _Request, error: RemoteError) -> None:
        """The request has shown that the server is away. Only the first and those that ask make the pause
        longer: others were sent before that was known.
        """
        if not self._lasts:
            return
        now = time.monotonic()
        with self._changed:
            outage = request.about or self._of(request)
            if outage is None or request.began - max(outage.last, outage.due) > OVER:
                outage = _Outage(request.server, request.api, error, request.began, now)
                self._away[request.server, request.api] = outage
            elif request.about is None and request.began < outage.last:
                return
            outage.failures += 1
            outage.error, outage.last = error, now
            outage.due = now + self._pause(outage, error, now - request.began)
            if self._spent(outage, now):
                error.away = self._length(outage)

    def _pause(self, outage: _Outage, error: RemoteError, took: float) -> float:
        """Seconds until the server may be asked again: never sooner than the last answer took. Jitter keeps
        runs apart; a last request comes at the end of the patience.
        """
        if isinstance(error, Busy) and error.retry_after is not None:
            return error.retry_after
        if _unmet(error):
            soon = max(SHORT_PAUSE, took)
            waited = outage.last + soon - outage.since > self._lasting(outage)
            return LONGEST_PAUSE if waited else soon  # who comes later need not ask, too
        if outage.failures == 1:
            return took
        doubled = pause(outage.failures - 1, FIRST_PAUSE, LONGEST_PAUSE) * random.SystemRandom().uniform(
            0.5, 1.0
        )
        left = outage.since + self._lasts - outage.last
        return min(max(doubled, took), left) if left > 0 else max(doubled, took)


def _api(path: str) -> str:
    """The API of a path: `/sdk`, `/api/vcenter`, `/apis/apps`. One may be away while the others answer."""
    parts = path.split("/")[1:]
    return "/".join(parts[: 2 if parts[0] in GROUPED else 1])


def _unmet(error: RemoteError) -> bool:
    return isinstance(error, Unreachable) and not error.met


def _speaks(response: httpx2.Response) -> bool:
    """Return whether a 500 is a SOAP fault: then the server works, and says what is wrong."""
    return response.status_code == 500 and "xml" in response.headers.get("content-type", "")
