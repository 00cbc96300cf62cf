"""The command line is gathered from its verbs, and a verb that is typed is read without the others."""

from __future__ import annotations

import pytest
from loading import loaded

from bfinfra.cli.main import main
from bfinfra.cli.parser import MODULES, VERBS, build
from bfinfra.cli.shells import Command, commands

HEAVY = {"dataclasses", "http.client", "importlib.metadata", "json", "pydantic", "yaml"}


def verbs(found: set[str]) -> set[str]:
    return {verb for verb in VERBS if f"bfinfra.cli.{MODULES.get(verb, verb)}" in found}


def of(verb: str, found: list[Command]) -> list[Command]:
    return [each for each in found if each.path[:1] == (verb,)]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_comes_first_is_read_as_among_all(verb: str) -> None:
    assert of(verb, [*commands(build([verb]))]) == of(verb, [*commands(build())]) != []


def test_all_arguments_are_listed_without_what_their_verbs_need() -> None:
    seen = loaded("from bfinfra.cli.parser import build; build()")
    assert verbs(seen) == {*VERBS}
    assert not (HEAVY & seen) - loaded("import argparse; argparse.ArgumentParser().add_subparsers()")  # 3.14


def test_one_verb_is_imported_where_it_is_typed_and_none_for_the_version() -> None:
    assert verbs(loaded("from bfinfra.cli.parser import build; build(['plan'])")) == {"plan"}
    assert verbs(loaded("from bfinfra.cli.parser import build; build(['--version'])")) == set()


def test_help_lists_every_verb_and_imports_none() -> None:
    seen = loaded("from bfinfra.cli.parser import build; build(['--help']).format_help()")
    assert verbs(seen) == set()
    assert build(["--help"]).format_help() == build().format_help()
    assert all(f"\n    {verb} " in build(["--help"]).format_help() for verb in VERBS)


def test_a_verb_may_come_after_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", "json", "schema"]) == 0
    assert '"$schema"' in capsys.readouterr().out


def test_a_verb_that_there_is_not_is_held_against_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plam"]) == 1
    assert "there is no 'plam'; did you mean plan" in capsys.readouterr().err
