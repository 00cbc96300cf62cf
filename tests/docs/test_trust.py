"""Each row of the table of trust names tests that are there and that run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/trust.md"
TEST = re.compile(r"^def test_", re.MULTILINE)


def rows() -> list[list[str]]:
    """The cells of the table, without its head."""
    table = PAGE.read_text().partition("## Who is trusted with what")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def shows(path: str) -> bool:
    """Whether a file, or a folder's files, hold tests."""
    place = ROOT / path
    files = sorted(place.rglob("test_*.py")) if place.is_dir() else [place] if place.is_file() else []
    return any(TEST.search(file.read_text()) for file in files)


def test_the_table_has_a_row_for_each_who() -> None:
    whos = [row[0] for row in rows()]
    assert len(whos) > 15
    for named in (
        "author of a site",
        "values",
        "chart",
        "vCenter",
        "supervisor",
        "Linux machine",
        "registry",
        "CI",
    ):
        assert any(named in who for who in whos), named
    assert "another user of this machine" in whos


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_a_row_says_what_is_done_and_which_tests_show_it(row: list[str]) -> None:
    assert len(row) == 4
    assert all(row)
    paths = re.findall(r"`(tests/[^`]+)`", row[3])
    assert paths, row
    assert [path for path in paths if not shows(path)] == []


def test_a_test_that_is_gone_is_noticed() -> None:
    assert not shows("tests/nothing/test_gone.py")
    assert not shows("tests/docs/pages.py")
