"""A unit has the settings that it was written of, and no other."""

from __future__ import annotations

import pytest
from formats import units
from formats.texts import GIVEN, TEXTS, tried
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bfinfra.formats import Unwritable, systemd


@tried
@given(st.lists(GIVEN, max_size=6), TEXTS, TEXTS)
@example([";", "$HOME", "%h", "\\", "a\nExecStartPre=/bin/id"], "a\n[Service]\nUser=root", "%S \\")
def test_nothing_is_added_to_a_unit(words: list[str], about: str, note: str) -> None:
    argv = ["/opt/a b/bfinfra", *words]
    text = systemd.unit(
        {
            "Unit": [("Description", systemd.words(about)), ("After", "x.target")],
            "Service": [("#", note), ("ExecStart", systemd.command(argv)), ("Restart", "always")],
        }
    )
    found = units.settings(text)
    assert all(line.isprintable() for line in text.split("\n"))
    assert {name: [key for key, _ in each] for name, each in found.items()} == {
        "Unit": ["Description", "After"],
        "Service": ["ExecStart", "Restart"],
    }
    assert units.argv(dict(found["Service"])["ExecStart"]) == [
        w.encode("utf-8", "surrogateescape") for w in argv
    ]
    assert "%" not in units.unspecified(dict(found["Unit"])["Description"]) or "%" in about


@tried
@given(TEXTS.filter(lambda text: text.isprintable() and not text.endswith("\\") and text == text.strip()))
def test_a_description_is_read_as_it_is(about: str) -> None:
    found = units.settings(systemd.unit({"Unit": [("Description", systemd.words(about))]}))
    assert units.unspecified(dict(found["Unit"])["Description"]) == about


@tried
@given(TEXTS)
def test_a_path_is_read_as_it_is_or_refused(text: str) -> None:
    try:
        written = systemd.path(f"/{text}")
    except Unwritable:
        assume(False)
    found = units.settings(systemd.unit({"Service": [("EnvironmentFile", written)]}))
    assert units.unspecified(dict(found["Service"])["EnvironmentFile"]) == f"/{text}"


@tried
@given(TEXTS)
def test_a_user_is_one_word_or_refused(name: str) -> None:
    try:
        assert systemd.user(name) == name
    except Unwritable:
        return
    assert name.isascii()
    assert name.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("value", ["a\nUser=root", "a\\", "\u2028"])
def test_a_value_that_leaves_its_line_is_refused(value: str) -> None:
    with pytest.raises(Unwritable, match="User="):
        systemd.unit({"Service": [("User", value)]})


@pytest.mark.parametrize(
    "program", ["-/bin/x", "@/bin/x", "bfinfra", "+/bin/x", "/a'b", "/a\\x41", "/$HOME/x", "/a\nb"]
)
def test_a_program_is_a_path_that_systemd_takes(program: str) -> None:
    with pytest.raises(Unwritable, match="no program that systemd takes"):
        systemd.command([program])
