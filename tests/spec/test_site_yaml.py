"""YAML as bfinfra reads it: text, places, and no tricks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bfinfra.model.yaml import MOST, Unreadable, compose

FILE = Path("site.yaml")


def plain(text: str) -> object:
    root, problems = compose(FILE, text)
    assert not problems, problems
    assert root
    return root.plain()


def refused(text: str) -> str:
    with pytest.raises(Unreadable) as caught:
        compose(FILE, text)
    return str(caught.value)


def test_scalars_stay_text() -> None:
    assert plain("{version: 1.20, no: no, id: 0x10de, when: 2021-07-02, octal: 010, sexagesimal: 1:30}") == {
        "version": "1.20",
        "no": "no",
        "id": "0x10de",
        "when": "2021-07-02",
        "octal": "010",
        "sexagesimal": "1:30",
    }


def test_nothing_is_none_and_quoted_nothing_is_text() -> None:
    assert plain("a:\nb: ~\nc: null\nd: ''\ne: 'null'\nf: |\n") == {
        "a": None,
        "b": None,
        "c": None,
        "d": "",
        "e": "null",
        "f": "",
    }


def test_a_key_may_look_like_anything() -> None:
    assert plain("{null: 1, no: 2, 3: 4}") == {"null": "1", "no": "2", "3": "4"}


def test_an_empty_file_has_no_root() -> None:
    assert compose(FILE, "# nothing\n") == (None, [])


def test_anchors_and_merge_keys_work_and_what_is_written_wins() -> None:
    text = (
        "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\nuser: {<<: [*base, *more], a: 9}\nlist: "
        "[*base]\n"
    )
    found = plain(text)
    assert isinstance(found, dict)
    assert found["user"] == {"a": "9", "b": "2", "c": "4"}
    assert found["list"] == [{"a": "1", "b": "2"}]


def test_a_quoted_merge_key_is_a_key() -> None:
    assert plain('{"<<": 1}') == {"<<": "1"}


def test_a_merge_of_a_scalar_is_a_problem() -> None:
    _, problems = compose(FILE, "a: {<<: x}")
    assert "<<: takes a mapping" in str(problems[0])


def test_places_count_from_one_and_in_characters() -> None:
    root, _ = compose(FILE, "ä: {ö: ü, b: [1, 2]}\n")
    assert root
    inner = root.value["ä"].node.value["b"]
    assert (inner.at.line, inner.at.column, inner.at.text) == (1, 11, "ä: {ö: ü, b: [1, 2]}")
    assert inner.node.value[1].at.column == 18


def test_a_key_twice_is_named_with_both_places() -> None:
    root, problems = compose(FILE, "a: 1\nb: 2\na: 3\n")
    assert [str(p) for p in problems] == [
        "site.yaml:3:1: the key a is defined twice; first in line 1; keep one of them"
    ]
    assert root
    assert root.plain() == {"a": "1", "b": "2"}


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!vault", "!!int", "!Ref"])
def test_tags_are_refused(tag: str) -> None:
    _, problems = compose(FILE, f"a: {tag} x\nb: 1\n")
    assert len(problems) == 1
    assert "is not allowed" in str(problems[0])


def test_tags_on_collections_are_refused() -> None:
    _, problems = compose(FILE, "a: !!set {x: }\nb: !!omap [x: 1]\n")
    assert len(problems) == 2


def test_an_alias_bomb_is_refused_quickly() -> None:
    levels = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"] + [
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)
    ]
    began = time.process_time()
    assert f"more than {MOST:,} values" in refused("\n".join(levels))
    assert time.process_time() - began < 5


def test_a_merge_bomb_is_refused_quickly() -> None:
    big = "base: &base {" + ",".join(f"k{n}: 1" for n in range(5000)) + "}\n"
    began = time.process_time()
    assert "values" in refused(big + "".join(f"u{n}: {{<<: *base}}\n" for n in range(5000)))
    assert time.process_time() - began < 5


def test_an_alias_inside_of_what_it_names_is_refused() -> None:
    assert "is inside of its own anchor" in refused("a: &a [*a]")


def test_an_alias_before_its_anchor_is_refused() -> None:
    assert "there is no &b before" in refused("a: *b\nc: &b 1")


def test_deep_nesting_is_refused_before_anything_overflows() -> None:
    assert "nested collections" in refused("a: " + "[" * 100_000)


def test_a_second_document_is_refused() -> None:
    assert "second document" in refused("a: 1\n---\nb: 2\n")


@pytest.mark.parametrize("text", ["{[a]: 1}", "? {a: 1}\n: 2\n", "x: &x [1]\n*x : 2\n"])
def test_keys_are_text(text: str) -> None:
    assert "a key must be text" in refused(text)


def test_a_tab_is_named_as_a_tab() -> None:
    assert "indent with blanks, not tabs" in refused("a:\n\tb: 1\n")


def test_an_unclosed_bracket_names_where_it_began() -> None:
    assert "line 2" in refused("a: 1\nb: [1, 2\nc: 3\n")


def test_a_control_character_is_found() -> None:
    assert refused("a: 1\nb: x\x07y\n").startswith("site.yaml:2:5: found a control character")


def test_a_line_that_is_shown_hides_what_may_be_a_password() -> None:
    root, _ = compose(FILE, "a: {admin_password: hunter2, name: x}\nb: {password: {env: NAME}}\n")
    assert root
    assert root.value["a"].at.text == "a: {admin_password: …, name: x}"
    assert root.value["b"].at.text == "b: {password: {env: NAME}}"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("x" * 600, "a key has 600 characters"),
        ('"a\\nb"', "an invisible character"),
        ('"a\u202eb"', "an invisible character"),
    ],
)
def test_a_key_is_short_and_can_be_read(key: str, message: str) -> None:
    assert message in refused(f"{key}: 1\n")


@pytest.mark.parametrize(
    ("text", "next_step"),
    [
        ("a:\n  b: 1\n c: 2\n", "in the same column"),
        ("a: 1\n  b: 2\n", "in the same column"),
        ("a: {b: 1\nc: 2\n", "close the bracket (opened in line 1)"),
        ('a: "b\n', "close the quotation mark (opened in line 1)"),
        ("a: @b\n", "in quotation marks"),
        ("a:\n\tb: 1\n", "indent with blanks, not tabs"),
    ],
)
def test_what_is_not_yaml_says_what_mends_it(text, next_step):
    with pytest.raises(Unreadable) as refused:
        compose(FILE, text)
    assert next_step in str(refused.value)


@pytest.mark.parametrize("text", ["{", "a:\n\tb: 1\n"])
def test_a_mark_where_the_parser_failed_is_not_shown_as_where_something_was_opened(text: str) -> None:
    with pytest.raises(Unreadable) as caught:
        compose(FILE, text)
    assert "opened in line" not in caught.value.problem.why + caught.value.problem.next
