"""An error says what is wrong, where, why, and what to do next."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from bfinfra.model import errors
from bfinfra.model.errors import (
    BfinfraError,
    Busy,
    Denied,
    FieldError,
    OutOfFiles,
    Place,
    Problem,
    Refusal,
    RemoteError,
    Unreachable,
)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("it is wrong"), "it is wrong"),
        (Problem("it is wrong", next="mend it"), "it is wrong; mend it"),
        (
            Problem("it is wrong", "vc.test", "it said so", "mend it"),
            "vc.test: it is wrong; it said so; mend it",
        ),
        (Problem("it is wrong", Place(Path("s.yaml"), 3, 5, "a: b")), "s.yaml:3:5: it is wrong"),
        (Problem("it is wrong", Place(Path("--set a=b"), 0, 0)), "--set a=b: it is wrong"),
    ],
)
def test_a_problem_is_told_in_one_line(problem: Problem, text: str) -> None:
    assert str(problem) == text
    assert str(BfinfraError(problem, "another")) == f"{text}\nanother"
    assert BfinfraError(problem, "another").problems == (problem, Problem("another"))


def test_an_error_of_a_field_has_its_path() -> None:
    error = FieldError("too large", "limits.cpu")
    assert (str(error), error.path, error.next) == ("too large", ("limits", "cpu"), "")
    error = FieldError("twice", ("hosts", 3), next="remove one")
    assert (error.path, error.next) == (("hosts", 3), "remove one")


def test_a_refusal_names_its_field() -> None:
    assert (Refusal("no").field, *Refusal("no").problems) == ("", Problem("no"))
    refused = Refusal("no", field="limits.cpu", why="because", next="mend it")
    assert (refused.field, *refused.problems) == ("limits.cpu", Problem("no", "", "because", "mend it"))


REMOTE = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, RemoteError)]


@pytest.mark.parametrize("kind", REMOTE)
def test_what_a_server_refused_is_told_with_the_server_and_what_helps(kind: type[RemoteError]) -> None:
    bare = kind("it failed")
    assert (bare.server, bare.away, *bare.problems) == ("", None, Problem("it failed", "", "", kind.remedy))
    full = kind("it failed", server="vc.test:443", why="it said so", next="mend it")
    assert full.server == "vc.test:443"
    assert full.problems == (Problem("it failed", "vc.test:443", "it said so", "mend it"),)


def test_what_is_known_beyond_the_words_is_kept() -> None:
    assert (Unreachable("x").met, Unreachable("x", met=False).met) == (True, False)
    assert (Busy("x").retry_after, Busy("x", retry_after=3).retry_after) == (None, 3)
    assert (Denied("x").privilege, Denied("x").account) == ("", False)
    assert Denied("x", privilege="System.Read").privilege == "System.Read"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("by", ["__cause__", "__context__"])
def test_that_no_more_files_can_be_opened_is_found_behind_another_error(number: int, by: str) -> None:
    error: Any = OSError(number, "Too many open files")
    for kind in (ConnectionError, RuntimeError):
        outer = kind("it failed")
        setattr(outer, by, error)
        error = outer
    found = OutOfFiles.behind(error)
    assert isinstance(found, OutOfFiles)
    assert str(found) == (
        "no more files can be opened; Too many open files; connections count as files; raise the limit "
        "(ulimit -n 4096), or lower --parallelism; then run this again"
    )


def test_no_other_error_is_of_too_many_files() -> None:
    error = OSError(errno.ENOENT, "No such file")
    error.__cause__ = KeyError(errno.EMFILE)
    assert OutOfFiles.behind(error) is OutOfFiles.behind(None) is None
