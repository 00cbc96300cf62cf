"""YAML as bfinfra reads it: text, places, and no tricks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from bfinfra.model.yaml import DEEPEST, LONGEST_KEY, MOST, Unreadable, _Composer, compose, compose_all

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: 1\nb: [1, 2\nc: 3\n",
            (
                "3:2: this is not YAML: did not find expected ',' or ']'; while parsing a flow sequence (opened in "
                "line 2); close the bracket (opened in line 2), or add a comma between two items"
            ),
        ),
        (
            "a:\t1\n  b: 2\n",
            (
                "2:4: this is not YAML: mapping values are not allowed in this context; begin the fields of one "
                "block in the same column, and those inside of it further to the right"
            ),
        ),
        (
            "a: [1]\n  b: 2\n\tc: 3\n",
            (
                "2:3: this is not YAML: did not find expected key; while parsing a block mapping (opened in line "
                "1); begin the fields of one block in the same column, and those inside of it further to the right"
            ),
        ),
        (
            "a: [",
            (
                "2:1: this is not YAML: did not find expected node content; close the bracket, or add a comma "
                "between two items"
            ),
        ),
        ("ä: é\nb:\n  c: \x02\n", "3:6: found a control character; YAML allows none; delete it"),
        (
            "a: 1\n---\nb: 2\n",
            (
                "2:1: a second document starts here; a site file is one document; delete the line ---, or make it "
                "a file of its own"
            ),
        ),
        ("a: &a [*a]\n", "1:8: *a is inside of its own anchor"),
        ("a: *b\n", "1:4: there is no &b before this *b"),
        ("? [1]\n: 2\n", "1:3: a key must be text; quote it if it begins with { or ["),
        ("x: &x [1]\n*x : 2\n", "2:1: a key must be text; found an alias"),
        ("[" * 65, "1:65: more than 64 nested collections"),
        (
            f"{'x' * 513}: 1\n",
            "1:1: a key has 513 characters; allowed are 512 printable characters; write a short name",
        ),
    ],
)
def test_what_cant_be_read_is_told_with_its_place_and_what_mends_it(text: str, message: str) -> None:
    assert refused(text) == f"site.yaml:{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a: "\\0"\n', "1:4: a value has a NUL in it; no program, file or server takes one; delete it"),
        (
            "a: !vault x\n",
            (
                "1:4: the tag !vault is not allowed; a site contains only plain values; write the value itself, or "
                "a reference such as {env: NAME}"
            ),
        ),
        (
            "a: {<<: x}\n",
            (
                "1:5: <<: takes a mapping, or a list of mappings; name an anchor of a mapping, such as <<: "
                "*defaults"
            ),
        ),
    ],
)
def test_what_is_wrong_and_can_be_read_past_is_told_with_its_place(text: str, message: str) -> None:
    _, problems = compose(FILE, f"{text}b: {{c: 1, c: 2}}\n")
    assert [str(each) for each in problems] == [
        f"site.yaml:{message}",
        "site.yaml:2:11: the key c is defined twice; first in line 2; keep one of them",
    ]


def test_what_is_just_within_its_bound_is_read() -> None:
    assert DEEPEST == 64
    assert plain("[" * 64 + "]" * 64)
    assert plain(f"{'x' * LONGEST_KEY}: 1\n")
    assert plain(f"[{'x,' * (MOST - 1)}]\n")
    assert refused(f"[{'x,' * MOST}]\n").endswith(
        "the file contains more than 250,000 values up to here; aliases count as the values that they repeat"
    )


def test_each_document_is_read_with_its_own_anchors() -> None:
    roots, problems = compose_all(FILE, "a: &a 1\n---\n[x]\n---\na: !t 2\n")
    assert [root.plain() for root in roots] == [{"a": "1"}, ["x"], {"a": "2"}]
    assert [each.where.line for each in problems] == [5]
    assert roots[2].at.file == FILE
    with pytest.raises(Unreadable, match="there is no &a before"):
        compose_all(FILE, "a: &a 1\n---\nb: *a\n")
    assert compose_all(FILE, "") == ([], [])


def test_where_the_parser_itself_gives_up_that_is_for_the_depth_too() -> None:
    mark = yaml.Mark("", 9, 1, 2, "", 0)
    error = yaml.MarkedYAMLError(None, None, "exceeded the maximum nesting depth", mark)
    problem = _Composer(FILE, "a:\n  [[[").syntax(error)
    assert str(problem) == "site.yaml:2:3: more than 64 nested collections"
    assert problem.where.text == "  [[["
    nowhere = yaml.MarkedYAMLError("while parsing", mark, "it ended", None)
    assert str(_Composer(FILE, "a:\n").syntax(nowhere)).startswith(
        "site.yaml:1:1: this is not YAML: it ended; while parsing (opened in line 2); "
    )


def test_a_line_is_shown_without_what_no_terminal_should_get() -> None:
    root, _ = compose(FILE, 'a: "x\u202ey\u200bz"  \n')
    assert root
    assert root.value["a"].at.text == 'a: "x y z"'


def test_a_scalar_is_a_value_by_itself_and_counts_once_for_each_alias() -> None:
    assert plain("x") == "x"
    root, _ = compose(FILE, "a: &x 1\nb: [*x, *x]\n")
    assert root
    assert root.plain() == {"a": "1", "b": ["1", "1"]}
    assert root.weight == 5


def test_a_merge_that_is_none_leaves_the_others() -> None:
    root, problems = compose(FILE, "base: &base {k: 1}\na: {<<: [x, *base]}\n")
    assert root
    assert root.plain()["a"] == {"k": "1"}
    assert len(problems) == 1


def test_a_tag_that_says_nothing_is_none() -> None:
    assert plain("a: ! x\n") == {"a": "x"}


def test_beyond_the_last_line_no_line_is_shown() -> None:
    with pytest.raises(Unreadable) as caught:
        compose(FILE, "a: [\n")
    assert (caught.value.problem.where.line, caught.value.problem.where.text) == (2, "")
