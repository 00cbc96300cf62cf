"""CI tries what a change concerns: a kind's folder and life, one kind of each group, the mirroring folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from changed import ROOT, TRIED_BY, USED_BY_ALL, Concern, concern, since

from bfinfra.kinds import GROUPS, groups


def a_test(path: str, *parameters: object) -> Any:
    """A test as pytest has it."""
    given = {"callspec": SimpleNamespace(params=dict(enumerate(parameters)))} if parameters else {}
    return SimpleNamespace(path=ROOT / path, **given)


LIFE, OTHERS = "tests/kinds/test_every_kind.py", "tests/kinds/test_unmanaged.py"


def chosen(found: Concern, tests: Iterable[Any]) -> list[bool]:
    return [found.has(each) for each in tests]


@pytest.mark.parametrize("kind", groups())
def test_a_change_of_a_kind_concerns_its_folder_and_its_life_and_no_other_kind(kind: str) -> None:
    home = ROOT / "bfinfra/kinds" / groups()[kind] / kind
    file = home / "spec.py" if home.is_dir() else home.with_suffix(".py")
    found = concern([str(file.relative_to(ROOT))])
    other = "namespace" if kind != "namespace" else "vm_class"
    own = a_test(f"tests/kinds/{kind}/test_{kind}.py"), a_test(LIFE, kind), a_test(OTHERS, kind, 1)
    assert chosen(found, own) == [True, True, True]
    assert chosen(found, (a_test(f"tests/kinds/{other}/test_x.py"), a_test(LIFE, other))) == [False, False]


@pytest.mark.parametrize("folder", USED_BY_ALL)
def test_a_change_of_what_all_kinds_use_concerns_one_kind_of_each_group(folder: str) -> None:
    for number in range(12):
        found = concern([f"bfinfra/{folder}/x.py"], number)
        assert sorted(groups()[kind] for kind in found.kinds) == sorted(GROUPS)
    assert concern([f"bfinfra/{folder}/x.py"], 0).kinds != concern([f"bfinfra/{folder}/x.py"], 1).kinds


def test_a_change_of_what_a_group_shares_concerns_the_whole_group() -> None:
    found = concern(["bfinfra/kinds/vcenter/base/pending.py"])
    assert found.kinds == {kind for kind, group in groups().items() if group == "vcenter"}


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("bfinfra/engine/guard.py", {"tests/engine"}),
        ("bfinfra/backends/kubernetes/client.py", {"tests/backends/kubernetes", "tests/contract"}),
        ("bfinfra/backends/transport.py", {"tests/backends", "tests/contract"}),
        ("bfinfra/render/plan.py", {"tests/render"}),
        ("docs/how-to/a.md", {"tests/docs"}),
        ("changelog.d/a.md", {"tests/docs"}),
        ("tests/model/test_mark.py", {"tests/model/test_mark.py"}),
        ("tests/engine/toys.py", {"tests/engine"}),
    ],
)
def test_other_code_concerns_the_tests_that_mirror_it(file: str, tests: set[str]) -> None:
    assert concern([file]).paths == tests
    assert not concern([file]).all


@pytest.mark.parametrize(
    "file", ["pyproject.toml", ".ci/run", "script/test", "tests/conftest.py", "bfinfra/__init__.py"]
)
def test_where_it_can_t_be_told_all_are_concerned(file: str) -> None:
    assert chosen(
        concern(["docs/a.md", file]), (a_test(LIFE, "namespace"), a_test("tests/cli/test_get.py"))
    ) == [True, True]


def test_of_a_commit_that_isn_t_here_it_can_t_be_told() -> None:
    assert since("0123456789abcdef").all


def test_several_files_concern_what_each_does() -> None:
    found = concern(["bfinfra/kinds/vcenter/vm_class/kind.py", "specs/kinds/namespace.yaml", "docs/a.md", ""])
    assert found == Concern(frozenset({"vm_class", "namespace"}), frozenset({"tests/docs"}))


def test_every_file_of_the_package_but_its_own_modules_is_told() -> None:
    untold = {
        path.relative_to(ROOT).parts[1]
        for path in (ROOT / "bfinfra").rglob("*.py")
        if concern([str(path.relative_to(ROOT))]).all
    }
    assert untold <= {each.name for each in (ROOT / "bfinfra").glob("*.py")} | {"lint"}


def test_each_path_of_a_rule_exists() -> None:
    missing = {
        each for those in TRIED_BY.values() for each in those if not Path(ROOT / "tests" / each).exists()
    }
    assert not missing
