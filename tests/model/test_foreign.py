"""YAML that others wrote: bounded, plain, and never quoted."""

from __future__ import annotations

import os
import time

import pytest
import yaml

from bfinfra.model import foreign
from bfinfra.model.sources import small

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAUGHS, "more than 100,000 values"),
        ("[" * 100_000, "more than 64 nested collections"),
        ("- " * 500_000, "more than 64 nested collections"),
        ("a: &a [*a]", "inside of its own anchor"),
        ("a: *b", "an alias"),
        ("!!python/object/apply:os.system [s3cret]", "a tag"),
        ("!!binary s3cret", "a tag"),
        ("!!set {s3cret}", "a tag"),
        ("!!int s3cret", "can't be read"),
        ("s3cret: [", "not YAML: line"),
        ("1: s3cret", "one of its keys is not text"),
        ("[1]: s3cret", "not YAML: line 1"),
        ("a: " + "9" * 5000, "can't be read"),
        ("x" * (foreign.LARGEST + 1), "larger than 1 MiB"),
        ("a: \ud800", "can't be read"),
        (b"\xff", "can't be read|not YAML"),
        ("a: \x1b", "can't be read|not YAML"),
        (
            "x: &x {"
            + ",".join(f"a{n}: 1" for n in range(500))
            + "}\n"
            + "".join(f"y{n}: {{<<: [{','.join(['*x'] * 300)}]}}\n" for n in range(9)),
            "more than 100,000 values",
        ),
    ],
)
def test_what_grows_recurs_or_constructs_is_refused_without_being_quoted(text, says):
    began = time.process_time()
    with pytest.raises(foreign.Unfit, match=says) as raised:
        foreign.documents(text)
    assert "s3cret" not in str(raised.value)
    assert time.process_time() - began < 2


def test_plain_values_are_read_and_dates_stay_as_they_are_written():
    assert foreign.documents("a: 2026-99-99\nb: &b [1, yes, ~, 1.5]\nc: *b\n---\n=: {<<: {x: 1}}\n") == [
        {"a": "2026-99-99", "b": [1, True, None, 1.5], "c": [1, True, None, 1.5]},
        {"=": {"x": 1}},
    ]


def test_only_plain_small_files_of_text_are_read(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 101)
    (tmp_path / "binary").write_bytes(b"\xff")
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        (tmp_path / "large", "larger"),
        (tmp_path / "binary", "UTF-8"),
        (tmp_path / "pipe", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (tmp_path, "not a regular file|directory"),
    ):
        with pytest.raises(OSError, match=says):
            small(path, 100)
    (tmp_path / "good").write_text("é")
    assert small(tmp_path / "good") == "é"


def test_the_place_where_a_text_is_no_yaml_is_reported_by_line_and_column_without_its_words():
    with pytest.raises(foreign.Unfit) as raised:
        foreign.documents("a: [\nb: s3cret: d\n")
    assert str(raised.value).startswith("it is not YAML: line 2, column ")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x" * (foreign.LARGEST + 1), "it is larger than 1 MiB"),
        ("a: 1\nb: !vault s3cret", "it has a tag that is not allowed, in line 2"),
        ("a: 1\nb: *c", "an alias is inside of its own anchor, or has no anchor, in line 2"),
        ("a: 1\nb: &b [*b]", "an alias is inside of its own anchor, or has no anchor, in line 2"),
        ("a:\n " + "[" * 64 + "]" * 64, "more than 64 nested collections, in line 2"),
        (
            f"\n[{'x,' * foreign.MOST}]",
            "it contains more than 100,000 values, with aliases expanded, in line 2",
        ),
        ("a: 's3cret", "it is not YAML: line 1, column 11 (found unexpected end of stream)"),
        ("%s3cret", "it is not YAML: line 1, column 8 (found unknown directive name)"),
        ("a: 1\ns3cret\n", "it is not YAML: line 3, column 1 (could not find expected …)"),
        ("a: \x07", "it contains something that can't be read as YAML (ReaderError)"),
        ("!!int s3cret", "it contains something that can't be read as YAML (ValueError)"),
        ("a: {1: s3cret}", "one of its keys is not text"),
        ("a: [[{b: {~: s3cret}}]]", "one of its keys is not text"),
    ],
)
def test_what_cant_be_read_is_told_with_its_line_and_without_its_words(text, says):
    with pytest.raises(foreign.Unfit) as raised:
        foreign.documents(text)
    assert str(raised.value) == says


def test_what_is_just_within_its_bounds_is_read():
    assert foreign.documents("x" * foreign.LARGEST) == ["x" * foreign.LARGEST]
    assert foreign.documents("[" * 64 + "]" * 64)
    assert foreign.documents(f"[{'x,' * (foreign.MOST - 1)}]") == [["x"] * (foreign.MOST - 1)]
    many = "x," * 999
    assert foreign.documents(f"a: &a [{many}]\nb: [{'*a,' * 98}]\nc: &c x\nd: *c\n")
    with pytest.raises(foreign.Unfit, match="more than 100,000 values"):
        foreign.documents(f"a: &a [{many}]\nb: [{'*a,' * 99}]\nc: &c x\nd: *c\n")
    assert foreign.documents(f"c: &c x\nd: [{'*c,' * 99_995}]\n")
    with pytest.raises(foreign.Unfit, match="more than 100,000 values"):
        foreign.documents(f"c: &c x\nd: [{'*c,' * 99_996}]\n")
    assert foreign.documents("") == foreign.documents(b"") == []


def test_where_the_parser_itself_gives_up_that_is_for_the_depth_too(monkeypatch):
    mark = yaml.Mark("", 9, 1, 2, "", 0)
    depth = "exceeded the maximum nesting depth"
    for given, says in (
        ((None, None, depth, mark), "more than 64 nested collections: line 2, column 3"),
        ((None, None, depth, None), "more than 64 nested collections"),
        (("while parsing", mark, None, None), "it is not YAML: line 2, column 3"),
    ):
        error = yaml.MarkedYAMLError(*given)
        monkeypatch.setattr(foreign, "_check", lambda _, error=error: (_ for _ in ()).throw(error))
        with pytest.raises(foreign.Unfit) as raised:
            foreign.documents("a")
        assert str(raised.value) == says
