"""Problems with place, line and caret."""

from __future__ import annotations

from pathlib import Path

from bfinfra.model.errors import Place, Problem
from bfinfra.render.problems import problem, problems
from bfinfra.render.style import Style


def at(column: int, text: str) -> Problem:
    return Problem("wrong", Place(Path("site.yaml"), 3, column, text))


def test_the_caret_underlines_the_word():
    assert problem(at(7, "name: cnasg")) == "site.yaml:3:7: error: wrong\n  name: cnasg\n        ^^^^^"


def test_the_caret_underlines_a_quoted_text():
    assert problem(at(7, 'name: "a b" # c')).endswith("\n        ^^^^^")


def test_the_caret_is_right_below_wide_letters_and_tabs():
    assert problem(at(6, "名前:\t x")) == "site.yaml:3:6: error: wrong\n  名前:  x\n         ^"


def test_a_long_line_is_cut_around_the_spot():
    shown = problem(at(501, "a" * 500 + "X" + "b" * 500)).splitlines()
    assert len(shown[1]) <= 124
    assert shown[1][shown[2].index("^")] == "X"


def test_a_spot_beyond_the_line_still_has_its_caret():
    assert problem(at(99, "short")).splitlines()[-1].strip() == "^"


def test_an_empty_line_shows_no_excerpt():
    assert problem(at(1, "  ")) == "site.yaml:3:1: error: wrong"


def test_why_and_next_are_below_also_over_several_lines():
    assert (
        problem(Problem("no answer", "vcsa:443", "refused\nsay both", "look at it"))
        == """\
vcsa:443: error: no answer
  why: refused
       say both
  next: look at it"""
    )


def test_the_same_problem_is_shown_once():
    assert problems([Problem("a"), Problem("b"), Problem("a")]) == "error: a\n\nerror: b"


def test_what_has_one_reason_shares_it():
    same = [Problem(f"{name} can't be read", why="no answer", next="mend that") for name in "ab"]
    assert (
        problems([*same, Problem("c")])
        == """\
error: a can't be read
error: b can't be read
  why: no answer
  next: mend that

error: c"""
    )


def test_the_offending_line_can_not_act_on_the_terminal():
    shown = problem(at(1, "\x1b[31mred"), Style(colour=True))
    assert "\\x1b[31mred" in shown
    assert "\x1b[31mred" not in shown
