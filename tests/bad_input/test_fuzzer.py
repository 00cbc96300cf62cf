"""A small share of the fuzzer, and proof that it finds what is planted: a crash, a hang, memory, a file
written, an escape on the screen.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from bad_input import fuzz, hostile

from bfinfra.backends.ova import xml
from bfinfra.render import safe
from bfinfra.spec import messages

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("part", "times"),
    [
        (hostile.sites, 60),
        (hostile.ovas, 40),
        (hostile.tokens, 30),
        (hostile.files_of_others, 30),
        (hostile.charts, 60),
        (hostile.images, 60),
        (hostile.certificates, 100),
        (hostile.packed_answers, 100),
    ],
)
def test_a_share_of_what_script_torture_tries(tmp_path: Path, part, times):
    found = part(times, 20261121, tmp_path)
    assert found.broken == []
    assert found.tried >= times
    assert found.tally["refused"] > times / 4


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Something wrong in the product; that it is found is enough, how small it can be made is not asked."""
    monkeypatch.setattr(fuzz, "SHRINK", False)
    return monkeypatch


def test_a_planted_crash_is_found(tmp_path: Path, planted: pytest.MonkeyPatch):
    def found(error: messages.Error) -> str:
        return f"found {error['input'][40]}"  # forgets that it may be short

    planted.setattr(messages, "found", found)
    broken = "".join(hostile.sites(400, 8, tmp_path).broken)
    assert re.search("this should not happen: (IndexError|TypeError)", broken)  # too short, or nothing at all


def test_a_planted_hang_is_found(tmp_path: Path, planted: pytest.MonkeyPatch):
    def entities(*_: object) -> None:
        until = time.thread_time() + 0.2  # for ever, in a thread of the command, would slow every later test
        while time.thread_time() < until:
            pass
        raise RuntimeError("the hang is over, and its thread ends")

    planted.setattr(fuzz, "LONGEST", 0.1)
    planted.setattr(xml, "first", entities)
    assert "Hung: longer than 0.1 s" in "".join(hostile.ovas(100, 1, tmp_path).broken)


def test_a_planted_escape_on_the_screen_is_found(tmp_path: Path, planted: pytest.MonkeyPatch):
    planted.setattr(safe, "visible", str)
    planted.setattr(messages, "found", lambda _: "found \x1b]52;c;cm0=\x07")
    assert "x1b" in "".join(hostile.sites(400, 6, tmp_path).broken)


def test_a_planted_file_is_found(tmp_path: Path, planted: pytest.MonkeyPatch):
    def found(_: messages.Error) -> str:
        (Path.home() / "dropped").write_text("x")
        return "found something"

    planted.setattr(messages, "found", found)
    assert "something was written in home" in "".join(hostile.sites(200, 1, tmp_path).broken)


def test_planted_memory_is_found(tmp_path: Path, planted: pytest.MonkeyPatch):
    held: list[bytes] = []
    planted.setattr(fuzz, "MOST", 60 << 20)
    planted.setattr(messages, "found", lambda _: held.append(b"x" * (80 << 20)) or "found too much")
    assert "MiB of memory" in "".join(hostile.sites(200, 1, tmp_path).broken)
