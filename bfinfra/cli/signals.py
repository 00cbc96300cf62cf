"""A command runs in a thread beside this one, which hears signals: no handler ever raises into anybody's
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

GRACE = 1.0  # seconds in which what only reads may log out
OVER = 0  # what is told where no signal came: the command ended
SHOW_CURSOR = "\x1b[?25h"


def conduct(command: Callable[[], int], stop: Stop) -> int:
    """The command's exit code; 130 or 143 where SIGINT or SIGTERM came before its end. Raises what the
    command raises.

    The first signal lets a run that writes end its steps; one that only reads has GRACE seconds. The second
    leaves at once.
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
                "\nstopping: what runs is finished, nothing new is started; once more stops now",
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
    """Each signal's number is told; a queue's put may be called at any instant, even from within itself."""
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
    """The board hides the cursor; nobody else would bring it back."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream.isatty():
                stream.write(SHOW_CURSOR + "\n")
            stream.flush()
