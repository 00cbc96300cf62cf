"""Which tests a change concerns, by the files that it touched: a kind's own folder and its life; for what all kinds
use, one kind of each group; for other code, the folder that mirrors it. CI runs these of the thorough tests in full.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bfinfra.kinds import GROUPS, groups

ROOT = Path(__file__).parents[1]
USED_BY_ALL = ("app", "engine", "kinds", "model", "sandbox")
"""Folders of the package that the life of any kind passes through."""
NOBODYS = ("CHANGELOG.md", "LICENSE", "changelog.d", "new", ".git-blame-ignore-revs")
"""What no test reads, but those of docs."""
TRIED_BY = {
    "README.md": ("docs", "test_library.py"),
    "SECURITY.md": ("docs",),
    "mkdocs.yml": ("docs",),
    "docs": ("docs",),
    "benchmarks": ("test_benchmarks.py",),
    "cassettes": ("contract",),
    "deploy": ("operator", "docs"),
    "playbooks": ("playbooks", "trust"),
}
"""First folder → what tries it, below tests/."""


class Concern(NamedTuple):
    """`kinds`: each with its folder and its life in the tests of every kind; `paths`: files and folders of tests;
    `all`: it can't be told.
    """

    kinds: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    all: bool = False

    def has(self, item: Any) -> bool:
        """Whether it is of a test."""
        path = item.path.relative_to(ROOT)
        given = getattr(item, "callspec", None)
        values = given.params.values() if given and path.parts[:2] == ("tests", "kinds") else ()
        return (
            self.all
            or any(Path(each) in (path, *path.parents) for each in self.paths)
            or (path.parts[:2] == ("tests", "kinds") and path.parts[2] in self.kinds)
            or any(isinstance(value, str) and value in self.kinds for value in values)
        )


def since(base: str, number: int = 0) -> Concern:
    """What was changed since a commit, also what isn't committed. `number`: which kind stands for its group."""
    command = ["git", "diff", "--name-only", "--no-renames", base]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return concern(done.stdout.split("\n"), number) if done.returncode == 0 else Concern(all=True)


def concern(files: Iterable[str], number: int = 0) -> Concern:
    """What changes of these files concern."""
    return _together(_of(Path(file), number) for file in files if file)


def _of(file: Path, number: int) -> Concern:
    first, *rest = file.parts
    if first in NOBODYS:
        return Concern(paths=frozenset({"tests/docs"}))
    if first in TRIED_BY:
        return Concern(paths=frozenset(f"tests/{each}" for each in TRIED_BY[first]))
    if first == "specs" and len(rest) == 2 and rest[0] == "kinds":
        return _kind(file.stem, number)
    if first == "tests":
        return _of_tests(file, number)
    if first != "bfinfra" or len(rest) < 2:
        return Concern(all=True)
    if rest[0] == "kinds" and len(rest) > 2 and rest[1] in GROUPS:
        name = Path(rest[2]).stem
        if name in groups():
            return _kind(name, number)
        return Concern(frozenset(kind for kind, group in groups().items() if group == rest[1]))
    folder = next(
        (f"tests/{'/'.join(rest[:n])}" for n in (2, 1) if (ROOT / "tests" / Path(*rest[:n])).is_dir()), None
    )
    own = Concern(paths=frozenset({folder} if folder else ()), all=folder is None and rest[0] != "kinds")
    if rest[0] == "backends":
        own = _together((own, Concern(paths=frozenset({"tests/contract"}))))
    return _together((own, _one_of_each_group(number))) if rest[0] in USED_BY_ALL else own


def _of_tests(file: Path, number: int) -> Concern:
    """A test concerns itself; what tests share, those in its folder."""
    rest = file.parts[1:]
    if len(rest) > 1 and rest[0] == "kinds" and rest[1] in groups():
        return _kind(rest[1], number)
    if file.name.startswith("test_"):
        return Concern(paths=frozenset({str(file)}))
    if len(rest) == 1:
        return Concern(all=True)
    return Concern(paths=frozenset({str(file.parent)}))


def _kind(name: str, number: int) -> Concern:
    return Concern(frozenset({name})) if name in groups() else _one_of_each_group(number)


def _one_of_each_group(number: int) -> Concern:
    members = [[kind for kind, group in groups().items() if group == each] for each in GROUPS]
    return Concern(frozenset(kinds[number % len(kinds)] for kinds in members))


def _together(found: Iterable[Concern]) -> Concern:
    listed = [*found]
    return Concern(
        frozenset().union(*(each.kinds for each in listed)),
        frozenset().union(*(each.paths for each in listed)),
        any(each.all for each in listed),
    )
