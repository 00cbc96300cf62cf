"""Files that a person brings later, such as a token that a running server issues, or an appliance that is
still being downloaded.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from bfinfra.model.compare import Unknown
from bfinfra.model.errors import Problem, Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.resource import Spec
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.step import Step

WHY = "what needs it waits; existing objects are compared with the digest noted when they were made"
UNNOTED = "what needs it waits; existing objects can't be compared with it, as no digest of it was noted"


class Awaited(Refusal):
    """A file is missing: its resource waits, and so does what waits for that. Everything else is planned and
    applied.

    `steps`: what to do once the file is there, as far as that is known.
    """

    def __init__(
        self, what: str, *, field: str = "", why: str = "", next: str = "", steps: Sequence[Step] = ()
    ) -> None:
        self.steps = tuple(steps)
        super().__init__(what, field=field, why=why, next=next)


@dataclass(frozen=True)
class Absent(Problem):
    """A missing file: which one, how to get it, and where to put it."""


Away = tuple[str, Absent]
"""The dotted field that names a file, and the missing file."""


def absent(file: LocalFile, how: str, why: str = WHY) -> Absent | None:
    """The problem of a missing file; None if anything is at its path.

    `how`: how to get it; `why`: what its absence means.
    """
    if not _missing(file.path):
        return None
    near = _near(file.path)
    then = f"{how}, and put it at {file.path}; then run: bfinfra apply SITE"
    return Absent(
        f"{file.text} is not there yet", "", why, f"did you mean {near}? Else {then}" if near else then
    )


def source(spec: type[Spec], path: str) -> str:
    """Return how to get the file that this field of a resource names; "" if such a file must be there.

    `path`: the dotted field, also of an item or entry.
    """
    above, _, last = path.rpartition(".")
    fields = (path, above if last.isdecimal() else path, path.partition(".")[0])
    return next((spec.awaits[field] for field in fields if field in spec.awaits), "")


def meaning(spec: type[Spec], path: str) -> str:
    """Return what the absence of such a file means: whether the mark holds a digest of it."""
    return WHY if {path, path.partition(".")[0]}.isdisjoint(spec.unnoted) else UNNOTED


def away(spec: Spec, files: Mapping[str, LocalFile | Secret | None]) -> Away | None:
    """The first of the files (dotted field → file, or the secret read from one) that is missing, or None."""
    for path, value in files.items():
        file = value.file if isinstance(value, Secret) else value
        if (
            file
            and _missing(file.path)
            and (problem := absent(file, source(type(spec), path), meaning(type(spec), path)))
        ):
            return path, problem
    return None


def until(file: LocalFile) -> Unknown:
    """The digest of a missing file, not yet known."""
    return Unknown(f"{file.text} is there", "digest")


def held(problem: Absent, field: str, steps: Sequence[Step] = ()) -> Awaited:
    """The Awaited error of a problem that `absent` returned. `field`: the dotted field that names the file.

    `steps`: what to do once the file is there.
    """
    return Awaited(problem.what, field=field, why=problem.why, next=problem.next, steps=steps)


def _missing(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        pass  # reading it reports what is wrong
    return False


def _near(path: Path) -> str:
    """The most similar name in the file's folder, or ""."""
    try:
        names = sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return ""
    return next(iter(difflib.get_close_matches(path.name, names)), "")
