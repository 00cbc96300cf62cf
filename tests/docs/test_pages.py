from __future__ import annotations

from collections import Counter

from docs.pages import DECISIONS, KINDS, decisions, pages


def test_the_generated_pages_are_what_the_code_says():
    made = pages()
    assert {file: file.read_text() for file in made if file.exists()} == made, "make them anew: script/pages"
    assert set(KINDS.glob("*.md")) <= set(made)


def test_each_decision_has_a_number_of_its_own_which_its_file_begins_with():
    found = decisions()
    assert [number for number, times in Counter(each.number for each in found).items() if times > 1] == []
    assert [each.file for each in found if not each.file.startswith(f"{each.number:04}-")] == []
    assert len(found) == len(list(DECISIONS.glob("*.md"))) - 1
