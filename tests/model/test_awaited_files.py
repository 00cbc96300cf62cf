"""A file that a person brings later holds its resource back, and says how to get it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from bfinfra.model.awaited import UNNOTED, WHY, Absent, Awaited, absent, away, held, meaning, source, until
from bfinfra.model.resource import Spec
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile, Sources
from bfinfra.model.step import Step


class Appliance(Spec):
    awaits: ClassVar[Mapping[str, str]] = {
        "ova": "download it",
        "token": "make one",
        "keys": "ask for them",
        "by_host.key": "look there",
    }
    unnoted: ClassVar[frozenset[str]] = frozenset({"ova", "keys"})


def file(path: Path) -> LocalFile:
    return LocalFile(path.name, path)


def test_a_missing_file_is_told_with_how_to_get_it_and_where_to_put_it(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    path = tmp_path / "server.ova"
    assert absent(file(path), "download it") == Absent(
        "server.ova is not there yet",
        "",
        WHY,
        f"download it, and put it at {path}; then run: bfinfra apply SITE",
    )
    (tmp_path / "servers.ova").touch()
    problem = absent(file(path), "download it", "what needs it waits")
    assert problem is not None
    assert problem.why == "what needs it waits"
    assert problem.next == (
        f"did you mean servers.ova? Else download it, and put it at {path}; then run: bfinfra apply SITE"
    )
    path.touch()
    assert absent(file(path), "download it") is None


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "f/below"])
def test_a_path_that_cannot_be_asked_for_is_reported_where_it_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "f").touch()
    assert absent(LocalFile(name, tmp_path / name), "download it") is None


def test_in_a_folder_that_is_missing_too_nothing_is_similar(tmp_path: Path) -> None:
    problem = absent(file(tmp_path / "nowhere" / "f"), "make it")
    assert problem is not None
    assert problem.next.startswith("make it, and put it at ")


@pytest.mark.parametrize(
    ("path", "how", "why"),
    [
        ("ova", "download it", UNNOTED),
        ("token", "make one", WHY),
        ("keys.0", "ask for them", UNNOTED),
        ("keys.name", "ask for them", UNNOTED),
        ("keys.0.name", "ask for them", UNNOTED),
        ("by_host.key", "look there", WHY),
        ("by_host.key.12", "look there", WHY),
        ("by_host.key.name", "", WHY),
        ("other", "", WHY),
    ],
)
def test_a_field_says_how_to_get_its_file_also_for_its_items(path: str, how: str, why: str) -> None:
    assert (source(Appliance, path), meaning(Appliance, path)) == (how, why)


def test_the_first_of_a_resources_files_that_is_missing_holds_it_back(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    there, missing = file(tmp_path / "there"), file(tmp_path / "missing")
    secret = Secret("file", "missing", Sources(tmp_path))
    files = {"ova": there, "token": None, "keys.0": secret, "keys.1": missing}
    assert away(Appliance(), files) == ("keys.0", absent(missing, "ask for them", UNNOTED))
    assert away(Appliance(), {"token": missing}) == ("token", absent(missing, "make one"))
    assert away(Appliance(), {"ova": there, "token": Secret("env", "T")}) is None


def test_a_resource_that_waits_says_for_what_and_what_is_left_to_do(tmp_path: Path) -> None:
    problem = absent(missing := file(tmp_path / "f"), "make it")
    assert problem is not None
    step = Step()
    found = held(problem, "token", [step])
    assert isinstance(found, Awaited)
    assert (found.field, found.steps, found.problems[0]) == ("token", (step,), held(problem, "").problems[0])
    assert (
        str(found)
        == f"f is not there yet; {WHY}; make it, and put it at {missing.path}; then run: bfinfra apply SITE"
    )
    assert held(problem, "token").steps == Awaited("x").steps == ()
    assert (Awaited("x").field, str(Awaited("x"))) == ("", "x")
    assert str(until(missing)) == "(known after f is there: digest)"
