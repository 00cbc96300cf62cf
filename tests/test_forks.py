"""Forks have imported what they need before they start."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from forks import forks

NEEDED = ("bfinfra.app.apply", "bfinfra.sandbox.serve", "kinds.lifecycle")


def report(sender: Connection) -> None:
    sender.send([name for name in NEEDED if name not in sys.modules])


def test_all_modules_of_a_sandbox_and_an_apply_are_imported_whatever_folder_the_test_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    receiver, sender = forks.Pipe(duplex=False)
    fork = forks.Process(target=report, args=(sender,))
    fork.start()
    assert receiver.recv() == []
    fork.join()
