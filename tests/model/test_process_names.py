from __future__ import annotations

import os
import random
import socket
import subprocess
import uuid
from pathlib import Path

import pytest

from bfinfra.model import process

NOBODY = 2**31 - 7
"""More than the largest id of a process."""


@pytest.fixture(params=["a card", "no card"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no card":
        monkeypatch.setattr(uuid, "getnode", lambda: random.getrandbits(48) | 1 << 40)


@pytest.mark.usefixtures("machine")
def test_a_process_of_this_machine_is_known_to_run_or_to_have_ended() -> None:
    here = process.me().rpartition("/")[0]
    assert process.mine(process.me())
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as other:
        assert not process.ended(f"{here}/{other.pid}")
        assert other.poll() is None, "nothing was sent to it"
    assert process.ended(f"{here}/{other.pid}")
    assert process.ended(f"{here}/{NOBODY}")


def test_of_a_process_of_another_machine_nothing_is_known() -> None:
    assert not process.ended(f"elsewhere/1a2b3c/{NOBODY}")
    assert not process.ended("nonsense")


def test_a_process_that_somebody_else_runs_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    here = process.me().rpartition("/")[0]
    for error in (PermissionError, OverflowError):

        def kill(_pid: int, number: int, error: type[Exception] = error) -> None:
            assert number == 0, "nothing is sent to it"
            raise error

        monkeypatch.setattr(os, "kill", kill)
        assert not process.ended(f"{here}/{NOBODY}")
    assert not process.ended(f"{here}/-1")
    assert not process.ended(f"{here}/x")


def test_a_process_is_named_by_its_machine_its_card_or_boot_and_its_id(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "host")
    monkeypatch.setattr(uuid, "getnode", lambda: 0x1A2B3C)
    assert process.me() == f"host/1a2b3c/{os.getpid()}"
    monkeypatch.setattr(uuid, "getnode", lambda: 1 << 40 | 0x1A2B3C)
    (tmp_path / "boot_id").write_text("b007\n")
    monkeypatch.setattr(process, "BOOT", tmp_path / "boot_id")
    assert process.me() == f"host/b007/{os.getpid()}"
    monkeypatch.setattr(process, "BOOT", tmp_path / "none")
    assert process.me() == f"host/100001a2b3c/{os.getpid()}"
    assert not process.mine(f"host/1a2b3c/{os.getpid()}")
