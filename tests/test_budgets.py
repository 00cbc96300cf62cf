"""The bounds of script/lint hold: what goes around the checks is counted, and says why."""

from __future__ import annotations

import ast
import importlib.util
from collections import Counter
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "script" / "budgets.py"
found = importlib.util.spec_from_file_location("budgets", SCRIPT)
budgets = importlib.util.module_from_spec(found)
found.loader.exec_module(budgets)

RULE, TYPE, *_ = budgets.ESCAPES  # written out, they would be marks of this file
AROUND = f"""
from typing import Any
import os  # {RULE}: F401 - an example
def f(x: Any) -> dict[str, Any]:
    try:
        return x  # {TYPE}[no-any-return]  # it is one
    except (OSError, Exception):
        raise
    except:
        raise
    except OSError:
        raise
"""


def test_every_way_around_the_checks_is_counted():
    assert budgets.escapes(AROUND, ast.parse(AROUND)) == {RULE: 1, TYPE: 1, "except Exception": 2, "Any": 2}


@pytest.mark.parametrize(("by", "advice"), [(-1, "lower its number"), (1, "justify that")])
@pytest.mark.parametrize("what", budgets.ESCAPES)
def test_a_count_that_fell_or_rose_is_reported(what, by, advice):
    (message,) = budgets.ratchet(
        Counter(budgets.ESCAPES) + Counter({what: 1})
        if by > 0
        else Counter(budgets.ESCAPES) - Counter({what: 1})
    )
    assert message.startswith(f"{what} stands {budgets.ESCAPES[what] + by} times")
    assert advice in message


def test_the_tables_counts_are_right():
    assert not list(budgets.ratchet(Counter(budgets.ESCAPES)))


@pytest.mark.parametrize("mark", [RULE, f"{RULE}: F401", TYPE, f"{TYPE}[misc]"])
def test_a_mark_without_its_reason_is_forbidden(mark):
    assert list(budgets.forbidden(SCRIPT, f"x = 1  # {mark}\n"))


@pytest.mark.parametrize("mark", [f"{RULE}: F401 - fixtures", f"{TYPE}[misc]  # mypy infers none"])
def test_a_mark_with_its_reason_is_allowed(mark):
    assert not list(budgets.forbidden(SCRIPT, f"x = 1  # {mark}\n"))
