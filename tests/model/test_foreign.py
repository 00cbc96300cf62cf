"""YAML that others wrote: bounded, plain, and never quoted."""

from __future__ import annotations

import os
import time

import pytest

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
