"""Runs a command in a thread, while the main thread handles signals: no handler ever raises into other
code.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import Thread

from bfinfra.cli import output
from bfinfra.model.stop import Stop

GRACE = 1.0  # seconds to log out, for a run that only reads
LOOK = 0.25  # seconds; a signal just before a wait begins doesn't end that wait
OVER = 0  # in the queue instead of a signal: the command ended
SHOW_CURSOR = "\x1b[?25h"


def conduct(command: Callable[[], int], stop: Stop) -> int:
    """Run the command, and return its exit code; 130 or 143 if SIGINT or SIGTERM came before its end. Raises
    what the command raises.

    After the first signal, a run that writes finishes its running steps; one that only reads has GRACE
    seconds. After the second one, the process exits at once.
    """
    events: SimpleQueue[int] = SimpleQueue()
    running = _Running(command, events)
    with _heard(events):
        running.start()
        number = _next(events)
        if number == OVER:
            return running.result()
        writes = stop.ask(number)
        if writes and not stop.serves:
            output.text(
                "\nstopping: running steps finish, no new one starts; press again to stop now",
                sys.stderr,
                flush=True,
            )
        number = _next(events, None if writes else GRACE) or number
        if not running.over:
            _restore()
        elif stop.serves:
            return running.result()
    if not writes and number == signal.SIGINT:
        output.error("interrupted")
    return 128 + number


def _next(events: SimpleQueue[int], within: float | None = None) -> int:
    """The next event; OVER if none comes `within` seconds."""
    until = None if within is None else time.monotonic() + within
    while until is None or time.monotonic() < until:
        with contextlib.suppress(Empty):
            return events.get(timeout=LOOK)
    return OVER


class _Running(Thread):
    """The command in its thread. It puts OVER into `events` when it ends."""

    def __init__(self, command: Callable[[], int], events: SimpleQueue[int]) -> None:
        super().__init__(name="command")
        self._command, self._events = command, events
        self._code = 0
        self._error: BaseException | None = None
        self.over = False

    def run(self) -> None:
        with contextlib.suppress(BaseException):  # `result` raises it in the main thread
            try:
                self._code = self._command()
            finally:
                self._error = sys.exception()
        self.over = True
        self._events.put(OVER)

    def result(self) -> int:
        """The exit code, once it is over. Raises what the command raised."""
        if self._error:
            raise self._error
        return self._code


@contextlib.contextmanager
def _heard(events: SimpleQueue[int]) -> Iterator[None]:
    """A queue of the signals. Its put may be called at any moment, even while it runs."""
    before = {
        number: signal.signal(number, lambda number, _: events.put(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _restore() -> None:
    """Show the cursor, which the progress board hides."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream.isatty():
                stream.write(SHOW_CURSOR + "\n")
            stream.flush()
