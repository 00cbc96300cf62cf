from __future__ import annotations

from kinds.pages import PAGES, pages


def test_the_pages_of_the_kinds_are_what_their_docstrings_and_examples_say():
    written = {path.name: path.read_text() for path in PAGES.glob("*.md")}
    assert written == pages(), "make them anew: script/pages"
