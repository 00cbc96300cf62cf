"""An apply in a process of its own that kills itself before or after its nth writing request: for servers
that don't count for us.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forks import forks
from peers.site_files import RETRY, everything

import bfinfra
from bfinfra.backends import writes
from bfinfra.engine.apply import Options

KILLED = -signal.SIGKILL


class Striking:
    """Middleware of the transport; `counted` is shared by all of a process's transports."""

    def __init__(self, inner: Any, counted: list[int], nth: int, when: str) -> None:
        self._inner, self._counted, self._nth, self._when = inner, counted, nth, when

    def handle_request(self, request: Any) -> Any:
        struck = False
        if writes.writes(request):
            self._counted.append(1)
            struck = len(self._counted) == self._nth
        if struck and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = self._inner.handle_request(request)
        if struck:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    def close(self) -> None:
        self._inner.close()


def _child(site: Path, state: Path, deadline: float, nth: int, when: str) -> None:
    os.environ["BFINFRA_STATE_HOME"] = str(state)
    counted: list[int] = []
    run_context = bfinfra.RunContext(
        retry=RETRY, middleware=(lambda inner: Striking(inner, counted, nth, when),)
    )
    outcome = bfinfra.apply(
        bfinfra.load(site),
        approve=everything,
        options=Options(retry=RETRY, deadline=deadline),
        context=run_context,
    )
    os._exit(
        0
        if all(ended.ending in ("done", "kept", "still-waiting") for ended in outcome.endings.values())
        else 1
    )


def run_to_its_kill(work: Callable[..., object], *what: object, nth: int, when: str) -> None:
    """`work(*what, filling)` in a process of its own that ends at its nth write; `work` is found by its name
    there.
    """
    child = forks.Process(target=_work, args=(work, what, nth, when))
    child.start()
    child.join(120)
    assert child.exitcode == KILLED, f"exit {child.exitcode}"


def _work(work: Callable[..., object], what: tuple[object, ...], nth: int, when: str) -> None:
    counted: list[int] = []
    work(*what, lambda inner: Striking(inner, counted, nth, when))


def start(site: Path, state: Path, *, deadline: float = 30, nth: int = 0, when: str = "") -> Any:
    """Start it; nth 0 is never. Exit code 0: all ended well or still waits."""
    child = forks.Process(target=_child, args=(site, state, deadline, nth, when))
    child.start()
    return child


def killed(site: Path, state: Path, nth: int, when: str, deadline: float = 30) -> None:
    """Run it to its kill."""
    child = start(site, state, deadline=deadline, nth=nth, when=when)
    child.join(120)
    assert child.exitcode == KILLED, f"exit {child.exitcode}"
