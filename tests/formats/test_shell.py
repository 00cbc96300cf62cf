"""Words of a command are found again by shells, one by one."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

import pytest
from formats.texts import GIVEN, MEANINGS, tried
from hypothesis import example, given
from hypothesis import strategies as st

from bfinfra.formats import Unwritable, shell


def argv(program: Sequence[str], line: str) -> list[bytes]:
    """What a shell gives to a command that is written so."""
    done = subprocess.run(
        [*program, f"printf '%s\\0' {line}"], capture_output=True, check=False, env={"PATH": "/bin"}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.split(b"\0")[:-1]


def as_bytes(words: Sequence[str]) -> list[bytes]:
    return [word.encode("utf-8", "surrogateescape") for word in words]


@tried
@given(st.lists(GIVEN, min_size=1, max_size=6))
@example(["a\udcff", "\u202e'\\"])
def test_bash_finds_the_same_words(words: list[str]) -> None:
    assert argv(("bash", "-c"), shell.line(words)) == as_bytes(words)


def test_every_meaning_at_once_is_data() -> None:
    for program in (("bash", "-c"), ("bash", "--posix", "-c")):
        assert argv(program, shell.line(MEANINGS)) == as_bytes(MEANINGS)
    plain = [word for word in MEANINGS if word.isprintable()]
    assert argv(("sh", "-c"), shell.line(plain)) == as_bytes(plain)


@tried
@given(st.lists(GIVEN, max_size=6))
def test_nothing_hides_in_a_line_that_is_pasted(words: list[str]) -> None:
    assert shell.line(words).isprintable()


@tried
@given(GIVEN.filter(str.isprintable))
def test_words_without_invisible_characters_are_written_as_python_does(word: str) -> None:
    assert shell.word(word) == shlex.quote(word)


@tried
@given(GIVEN)
def test_a_comment_and_an_assignment_set_one_variable(text: str) -> None:
    script = f'{shell.comment(text)}\n{shell.assignment("X", text)}\nprintf %s "$X"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, env={})
    assert (done.returncode, done.stdout, done.stderr) == (0, *as_bytes([text]), b"")


@pytest.mark.parametrize("text", ["a\0", "\ud800"])
def test_what_no_program_can_be_given_is_refused(text: str) -> None:
    with pytest.raises(Unwritable):
        shell.word(text)


@pytest.mark.parametrize("name", ["", "1a", "A;id", "A\n", "a-b", "é"])
def test_what_is_no_variable_is_refused(name: str) -> None:
    with pytest.raises(Unwritable, match="no name of a variable"):
        shell.assignment(name, "x")
