"""The request to end the run. Signal handlers set only this; the run's own code checks it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Flag
from threading import Lock


class Interrupted(BaseException):
    """The run was asked to end before it began to write. Only bfinfra's own code raises it; no library takes
    it for one of its own errors.
    """


class Stop:
    """`flag`: set once the run was asked to end; `number`: the signal that asked, 0 before; `serves`: whether
    it is a service, for which ending is success; `wake`: called when it is asked to end, maybe by a signal's
    handler.
    """

    def __init__(self) -> None:
        self.flag = Flag()
        self.number = 0
        self.serves = False
        self.wake: Callable[[], None] = lambda: None
        self._writing = False
        self._lock = Lock()

    @property
    def code(self) -> int:
        """The exit code of a stopped run: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number

    def ask(self, number: int) -> bool:
        """Ask the run to end. Returns whether it writes, and so finishes its running steps first."""
        with self._lock:
            self.number = number
            self.flag.set()
            self.wake()
            return self._writing

    def begin_writing(self) -> None:
        """From now on the run ends between two steps, and `check` raises nothing. Raises Interrupted if it
        was asked to end before.
        """
        with self._lock:
            self._check()
            self._writing = True

    def check(self) -> None:
        """Raises Interrupted if the run was asked to end before it began to write."""
        with self._lock:
            self._check()

    def _check(self) -> None:
        if self.flag.is_set() and not self._writing:
            raise Interrupted
