"""The runner of script/torture: what breaks is counted, printed and ends with 1; a part's section is written
anew and the others stay.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from torture import __main__ as runner
from torture import page
from torture.counting import Count, Effort


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """A part that tries three times and breaks once."""

    def counts(effort: Effort) -> list[Count]:
        count = Count("`x`", figures={"acts": 3})
        for number in effort.some(range(3), 2):
            with count.trial(f"number {number}"):
                assert number != 1 or effort.share, "number 1 | never holds"
        return [count]

    made = ModuleType("torture.parts.fragile", "Fragile things.\n\nThey break.")
    made.counts = counts
    monkeypatch.setitem(sys.modules, "torture.parts.fragile", made)
    monkeypatch.setattr(runner, "PARTS", ["fragile"])
    monkeypatch.setattr(runner.page, "PAGE", tmp_path / "reliability.md")
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path))
    return made


def test_a_failure_is_printed_written_and_ends_with_1(
    part: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main(["fragile", "--seed", "7"]) == 1
    assert "2 of 3" in capsys.readouterr().out
    text = page.PAGE.read_text()
    assert "## Fragile things\n\nThey break.\n" in text
    assert "| `x` | 3 | 2 | acts: 3 |" in text
    assert "number 1: AssertionError: number 1 \\| never holds" in text


def test_a_share_is_smaller_and_writes_nothing(part: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--share"]) == 0
    assert "2 of 2" in capsys.readouterr().out
    assert not page.PAGE.exists()


def test_a_section_replaces_its_own_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    for part, times in (("b", 1), ("a", 2), ("b", 3)):
        page.write(page.Ran(part, part, 0, 0, [Count(part, times)]), ["a", "b"], file)
    text = file.read_text()
    assert [line for line in text.splitlines() if line.startswith("| ") and "tried" not in line] == [
        "| a | 2 | 2 |  |",
        "| b | 3 | 3 |  |",
    ]


def test_the_seed_alone_decides_what_is_drawn(tmp_path: Path) -> None:
    drawn = [Effort(True, seed, tmp_path).some(range(1000), 5) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_section_names_the_commit_that_was_tried(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    page.write(page.Ran("a", "a", 0, 0, [Count("x", 1)]), ["a"], file)
    written = re.search(r", commit ([0-9a-f]{8,})\+?, 0 s", file.read_text())
    assert written is not None
    known = ["git", "cat-file", "-e", f"{written[1]}^{{commit}}"]
    assert subprocess.run(known, cwd=Path(__file__).parent, check=False).returncode == 0


def test_lines_of_a_section_can_be_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    broken, mended, other = Count("x", 2, ["it: broke"]), Count("x", 3), Count("y", 4)
    page.write(page.Ran("a", "a", 0, 0, [broken, other]), ["a"], file)
    page.write(page.Ran("a", "a", 1, 0, [mended], only="x"), ["a"], file)
    text = file.read_text()
    assert "| y | 4 | 4 |  |\n| x | 3 | 3 |  |" in text
    assert "it: broke" not in text
    assert "--only 'x' --seed 1" in text


def test_a_section_names_the_lines_and_the_seconds_that_it_was_made_with(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    page.write(page.Ran("a", "a", 1, 0, [Count("x", 3)], only="x", lasts=60), ["a"], file)
    assert "script/torture a --only 'x' --seconds 60 --seed 1" in file.read_text()


def test_what_lasts_is_as_long_as_is_asked_for(tmp_path: Path) -> None:
    asked, whole, share = (
        Effort(share, 1, tmp_path, lasts=n) for share, n in ((True, 60), (False, 0), (True, 0))
    )
    assert [each.seconds(3600, 3) for each in (asked, whole, share)] == [60, 3600, 3]
