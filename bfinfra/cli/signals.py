"""Runs a command in a thread, while the main thread handles signals: no handler ever raises into other
code.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

from bfinfra.model.stop import Stop

GRACE = 1.0  # seconds to log out, for a run that only reads
OVER = 0  # in the queue instead of a signal: the command ended
SHOW_CURSOR = "\x1b[?25h"


def conduct(command: Callable[[], int], stop: Stop) -> int:
    """Run the command, and return its exit code; 130 or 143 if SIGINT or SIGTERM came before its end. Raises
    what the command raises.

    After the first signal, a run that writes finishes its running steps; one that only reads has GRACE
    seconds. After the second one, the process exits at once.
    """
    events: SimpleQueue[int] = SimpleQueue()
    beside = ThreadPoolExecutor(1, thread_name_prefix="command")
    with _heard(events):
        ended = beside.submit(command)
        ended.add_done_callback(lambda _: events.put(OVER))
        beside.shutdown(wait=False)
        number = events.get()
        if number == OVER:
            return ended.result()
        writes = stop.ask(number)
        if writes:
            print(
                "\nstopping: running steps finish, no new one starts; press again to stop now",
                file=sys.stderr,
                flush=True,
            )
        with contextlib.suppress(Empty):
            number = events.get(timeout=None if writes else GRACE) or number
        if not ended.done():
            _restore()
        elif stop.serves:
            return ended.result()
    if not writes and number == signal.SIGINT:
        print("interrupted", file=sys.stderr)
    return 128 + number


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
