"""A run of the whole suite leaves out what repeats for many what others show for one; a run of chosen tests does
not, and --thorough runs all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KIND = "test_every_kind.py::test_killed_amid_each_way_it_is_finished_by_the_next_run"
LEFT_OUT = (
    "tests that repeat for many what others show for one were left out; to run them: script/test --thorough"
)


def collected(*words: str) -> str:
    """The tests that pytest would run if the whole suite were the life cycles."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only"]
    return subprocess.run(
        [*command, "-o", "testpaths=tests/kinds/test_every_kind.py", *words],
        cwd=ROOT, env=clean, capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip


def test_a_run_of_the_whole_suite_leaves_them_out_and_says_so() -> None:
    listed = collected()
    assert "test_it_applies_agrees_and_goes" in listed
    assert f"{KIND}[namespace]" in listed
    assert f"{KIND}[port_group]" not in listed
    assert LEFT_OUT in listed


@pytest.mark.parametrize(
    "words",
    [
        ("-k", "killed_amid"),
        *(
            pytest.param(words, marks=pytest.mark.thorough)
            for words in (("--thorough",), ("tests/kinds/test_every_kind.py",), ("-m", "thorough"))
        ),
    ],
)
def test_they_run_if_asked_for(words: tuple[str, ...]) -> None:
    listed = collected(*words)
    assert f"{KIND}[port_group]" in listed
    assert LEFT_OUT not in listed
