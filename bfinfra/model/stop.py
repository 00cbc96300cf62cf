"""Whether somebody asked the run to end. Handlers of signals set nothing else; the run's own code looks at
it.
"""

from __future__ import annotations

from threading import Event as Flag
from threading import Lock


class Interrupted(BaseException):
    """The run was asked to end before it began to write. Raised by bfinfra's own code only; no library takes
    it for an error of its own.
    """


class Stop:
    """`flag` is up once the run was asked to end; `number`: the signal that asked, 0 before; `serves`: a
    service, whose good end that is.
    """

    def __init__(self) -> None:
        self.flag = Flag()
        self.number = 0
        self.serves = False
        self._writing = False
        self._lock = Lock()

    @property
    def code(self) -> int:
        """The exit code of a stopped run: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number

    def ask(self, number: int) -> bool:
        """Ask the run to end; whether it writes, and so ends what it runs first."""
        with self._lock:
            self.number = number
            self.flag.set()
            return self._writing

    def begin_writing(self) -> None:
        """From here on the run ends between two steps, and `check` holds nothing back. Interrupted where it
        was asked to end before.
        """
        with self._lock:
            self._check()
            self._writing = True

    def check(self) -> None:
        """Interrupted where the run was asked to end before it began to write."""
        with self._lock:
            self._check()

    def _check(self) -> None:
        if self.flag.is_set() and not self._writing:
            raise Interrupted
