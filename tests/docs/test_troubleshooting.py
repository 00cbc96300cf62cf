"""The page of errors quotes messages that bfinfra prints."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from docs.commands import blocks

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text()
MESSAGES = [block.text.strip() for block in blocks(PAGE) if block.language == "text"]
SHORTEST = 10  # letters of a message that are its own, not a name's


@cache
def templates() -> dict[str, list[str]]:
    """Every text in bfinfra's code as a pattern, with the words that it must have; what a format fills in
    stands for any text.
    """
    found: dict[str, list[str]] = {}
    for file in (ROOT / "bfinfra").rglob("*.py"):
        docstrings = set()
        for node in ast.walk(ast.parse(file.read_text())):  # what holds a docstring comes before it
            if (
                isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                and node.body
                and isinstance(node.body[0], ast.Expr)
            ):
                docstrings.add(id(node.body[0].value))
            if not isinstance(node, ast.JoinedStr | ast.Constant) or id(node) in docstrings:
                continue
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            words = [text for text in texts if isinstance(text, str)]
            if len("".join(words).replace(" ", "")) >= SHORTEST:
                found["".join(".+" if text is None else re.escape(str(text)) for text in texts)] = words
    return found


def is_printed(message: str) -> bool:
    """To compile every text as a pattern takes seconds: only those whose words the message has are."""
    return any(
        re.fullmatch(template, message)
        for template, words in templates().items()
        if all(word in message for word in words)
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_on_the_page_is_one_that_the_code_has(message):
    assert is_printed(message) or any(template.startswith(re.escape(message)) for template in templates())


@pytest.mark.parametrize(
    "message", ["there is no shield cpus", "no connexion", "it stands there, and bfinfra"]
)
def test_a_message_that_the_code_does_not_have_is_found(message):
    assert not is_printed(message)


def test_the_page_quotes_each_message_once():
    assert len(MESSAGES) == len(set(MESSAGES)) >= 30
