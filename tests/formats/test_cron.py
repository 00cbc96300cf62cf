"""A line of a crontab, as cron and the shell that it starts read it."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from formats.texts import GIVEN, tried
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bfinfra.formats import Unwritable, cron


def vixie(command: str) -> str:
    r"""What Vixie's cron and Debian's give to sh: `\` and the character behind it stay, the first other `%` ends it."""
    at, found = 0, []
    while at < len(command) and command[at] != "%":
        step = 2 if command[at] == "\\" else 1
        found.append(command[at : at + step])
        at += step
    assert at >= len(command), "the rest is standard input"
    return "".join(found)


def isc(command: str) -> str:
    r"""What ISC cron and cronie give to sh: of `\%` and `\\`, the second character."""
    found, at = [], 0
    while at < len(command):
        assert command[at] != "%", "the rest is standard input"
        if command[at] == "\\" and command[at + 1 : at + 2] in ("%", "\\"):
            at += 1
        found.append(command[at])
        at += 1
    return "".join(found)


@pytest.mark.parametrize("read", [vixie, isc])
@tried
@given(st.lists(GIVEN.filter(str.isprintable), min_size=1, max_size=6))
@example(["a\\\\b", "100%", "\\%", "a'%'b\\"])
def test_the_words_are_found_again(read: Callable[[str], str], words: list[str]) -> None:
    assume(len(cron.line("", words).encode()) < cron.LONGEST)
    line = cron.line("* * * * *", words)
    assert line.isprintable()
    assert shlex.split(read(line.split(" ", 5)[5])) == words


@tried
@given(GIVEN.filter(lambda text: not text.isprintable()))
def test_what_would_end_the_line_or_hide_in_it_is_refused(text: str) -> None:
    with pytest.raises(Unwritable, match="no crontab can hold"):
        cron.line("* * * * *", ["bfinfra", text])


def test_a_command_that_cron_would_cut_is_refused() -> None:
    assert cron.line("* * * * *", ["a" * cron.LONGEST])
    with pytest.raises(Unwritable, match="998 bytes"):
        cron.line("* * * * *", ["a" * (cron.LONGEST + 1)])
