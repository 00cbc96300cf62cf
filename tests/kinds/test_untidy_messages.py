"""Situations of an untidy vCenter, each with the command that meets it: how it ends, and every word of what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from docs.commands import differs
from kinds.untidy_page import met, scene, shown
from kinds.untidy_situations import SITUATIONS, Scene, Situation

WHERE = re.compile(r"\bsite\.yaml:\d+:\d+|[a-z_]+/[\w.-]+|(?:/[^/ ,]+){2,}")
"""A line of the site, an address, or a path of the inventory."""


@pytest.fixture(scope="module")
def vcenter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("untidy") / "ours") as found:
        yield found


def test_there_are_more_than_twenty_and_each_is_on_the_page_once() -> None:
    assert len(SITUATIONS) == len(shown()) > 20
    assert [*shown()] == [each.about for each in SITUATIONS]


@pytest.mark.thorough("Two templates have the name", "The folder is missing")
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.about)
def test_it_ends_and_prints_as_the_page_shows(situation: Situation, vcenter: Scene) -> None:
    code, printed = met(situation, vcenter)
    assert code == situation.code, printed
    expected, text = shown()[situation.about]
    assert (code, differs(text, printed)) == (expected, "")


@pytest.mark.parametrize("about", shown())
def test_a_message_says_where_why_and_what_next(about: str) -> None:
    code, text = shown()[about]
    if code:
        assert WHERE.search(text), text
        assert "why: " in text or re.search(r"can't be read: [^;]*; .+", text), text
        assert "next: " in text or "can't be read: " in text, text
