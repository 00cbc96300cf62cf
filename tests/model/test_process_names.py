from __future__ import annotations

import os
import random
import uuid

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
    assert not process.ended(f"{here}/{os.getppid()}")
    assert process.ended(f"{here}/{NOBODY}")


def test_of_a_process_of_another_machine_nothing_is_known() -> None:
    assert not process.ended(f"elsewhere/1a2b3c/{NOBODY}")
    assert not process.ended("nonsense")
