"""The first signal stops an apply gently, the second at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import field
from threading import Event as Flag
from types import FrameType

from bfinfra.model.records import dataclass

SHOW_CURSOR = "\x1b[?25h"


@dataclass
class Stop:
    """`flag` is what the engine looks at; `number` the signal that came, 0 before."""

    flag: Flag = field(default_factory=Flag)
    number: int = 0

    @property
    def code(self) -> int:
        """The exit code of a stopped run: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


@contextlib.contextmanager
def stoppable(stop: Stop, leave: Callable[[int], None] = os._exit) -> Iterator[None]:
    """While writing: the first SIGINT or SIGTERM sets the flag, the second leaves the process."""

    def handle(number: int, _: FrameType | None) -> None:
        if stop.flag.is_set():
            _restore()
            leave(128 + number)
        stop.number = number
        stop.flag.set()
        print("\nstopping: what runs is finished, nothing new is started; once more stops now", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
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
