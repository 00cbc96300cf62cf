"""Files that a person brings later: a token that a running server hands out, an appliance that is still
downloaded.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bfinfra.model.compare import Unknown
from bfinfra.model.errors import Problem, Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.resource import Spec
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.step import Step

WHY = "what needs it waits for it; what stands is compared with what was noted when it was made"
UNNOTED = "what needs it waits for it; what stands can't be compared with it, as nothing of it was noted"


class Awaited(Refusal):
    """A file that isn't there yet: its resource waits, and what waits for that. Everything else is planned
    and applied.

    `steps`: what is to be done once it is there, as far as that is known.
    """

    def __init__(
        self, what: str, *, field: str = "", why: str = "", next: str = "", steps: Sequence[Step] = ()
    ) -> None:
        self.steps = tuple(steps)
        super().__init__(what, field=field, why=why, next=next)


@dataclass(frozen=True, slots=True)
class Absent(Problem):
    """A file that isn't there yet: which, where one gets it, and where it goes."""


Away = tuple[str, Absent]
"""The dotted field that names a file, and what to bring."""


def absent(file: LocalFile, how: str, why: str = WHY) -> Absent | None:
    """What to bring where the file isn't there; None where something is there, whatever it is.

    `how`: where one gets it; `why`: what its absence means.
    """
    try:
        file.path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        return None  # whoever reads it says what is wrong with it
    else:
        return None
    near = _near(file.path)
    then = f"{how}, and put it at {file.path}; then run: bfinfra apply SITE"
    return Absent(
        f"{file.text} is not there yet", "", why, f"did you mean {near}? Else {then}" if near else then
    )


def source(spec: type[Spec], path: str) -> str:
    """Where the file is had that a field of a resource names; "" where such a file must be there.

    `path`: the dotted field, of an item or of an entry as well.
    """
    fields = (path, re.sub(r"\.\d+$", "", path), path.partition(".")[0])
    return next((spec.awaits[field] for field in fields if field in spec.awaits), "")


def meaning(spec: type[Spec], path: str) -> str:
    """What it means that such a file isn't there: whether something of it was noted."""
    return WHY if {path, path.partition(".")[0]}.isdisjoint(spec.unnoted) else UNNOTED


def away(spec: Spec, files: Mapping[str, LocalFile | Secret | None]) -> Away | None:
    """The first of the files (dotted field → file, or what may be read from one) that isn't there yet, if
    any.
    """
    for path, value in files.items():
        file = value.file if isinstance(value, Secret) else value
        if file and (problem := absent(file, source(type(spec), path), meaning(type(spec), path))):
            return path, problem
    return None


def until(file: LocalFile) -> Unknown:
    """The digest of a file that isn't there yet."""
    return Unknown(f"{file.text} is there", "digest")


def held(problem: Absent, field: str, steps: Sequence[Step] = ()) -> Awaited:
    """The problem of `absent`, to be raised by the kind that needs the file. `field`: the dotted field that
    names it.

    `steps`: what is to be done once it is there.
    """
    return Awaited(problem.what, field=field, why=problem.why, next=problem.next, steps=steps)


def _near(path: Path) -> str:
    """The name in its folder that is most like it; "" where none is."""
    try:
        names = sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return ""
    return next(iter(difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)), "")
