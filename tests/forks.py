"""Processes that tests start, as forks of one process a worker that has imported what they all import: the
imports are most of what a sandbox takes to start, or an apply in a process of its own.

`python -m bfinfra` and `python -m bfinfra.sandbox` themselves start in tests/cli and tests/sandbox/test_process.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from unittest import mock

from bfinfra.sandbox import __main__ as program
from bfinfra.sandbox.process import environment

HERE = Path(__file__).parent


class Forked(ForkServerProcess):
    """A fork of the process that has imported tests/forked.py. That process looks for it along its own path
    only, and says nothing where it doesn't find it.
    """

    def start(self) -> None:
        path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
        with mock.patch.dict(os.environ, PYTHONPATH=path):
            forkserver.ensure_running()
        super().start()


class Forks(ForkServerContext):
    Process = Forked


forks = Forks()
forks.set_forkserver_preload(["forked"])


class Sandbox:
    """`python -m bfinfra.sandbox WORDS`, forked; it ends with the tests at the latest."""

    def __init__(self, words: Sequence[str], log: Path) -> None:
        self._process = forks.Process(
            target=_sandbox, args=(words, log.resolve(), Path.cwd(), environment()), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        found = self._process.pid
        assert found
        return found

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


def _sandbox(words: Sequence[str], log: Path, folder: Path, variables: Mapping[str, str]) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    with log.open("wb") as out, Path(os.devnull).open("rb") as nothing:
        for stream, number in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(stream.fileno(), number)
    raise SystemExit(program.main(words))
