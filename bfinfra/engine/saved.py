"""Saved plans: what was shown, and the digests of the files it was made from. The plan shown is the
plan run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bfinfra.model import private
from bfinfra.model.errors import BfinfraError, Diverged, Problem
from bfinfra.model.plan import Plan, agrees, step_data
from bfinfra.model.records import dataclass
from bfinfra.model.redact import clean
from bfinfra.model.site import Site
from bfinfra.model.sources import small

FORMAT_VERSION = 1
LARGEST = 64 << 20  # bytes of a saved plan


def items_data(plan: Plan) -> dict[str, Any]:
    """Address → action and steps, as plain data without secrets."""
    data = {
        str(item.key): {"action": str(item.action), "steps": [step_data(s) for s in item.steps]}
        for item in plan.pending
    }
    found: dict[str, Any] = clean(data)  # the world may hold, as something else, what is a secret here
    return found


def write(path: Path, site: Site, plan: Plan, *, destroy: bool = False) -> None:
    """Write a plan for a later apply; readable by its owner only."""
    data = {
        "format_version": FORMAT_VERSION,
        "site": plan.site,
        "destroy": destroy,
        "files": {str(file.absolute()): digest for file, digest in site.files.items()},
        "items": items_data(plan),
    }
    private.write(path, json.dumps(data, indent=1))


def is_plan(path: Path) -> bool:
    """Whether a file is a saved plan rather than a site."""
    if not path.is_file():
        return False
    with path.open("rb") as start:
        return start.read(1) == b"{" and b'"format_version"' in start.read(200)


@dataclass(frozen=True)
class Saved:
    """A plan read back."""

    site: str
    destroy: bool
    files: Mapping[str, str]
    items: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Saved:
        """BfinfraError where it is no plan of this version, or the site's files changed since."""
        try:
            data = json.loads(small(path, LARGEST))
            saved = cls(data["site"], data["destroy"], data["files"], data["items"])
            saved.check_types()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            why = error.strerror if isinstance(error, OSError) else type(error).__name__
            raise BfinfraError(
                Problem(
                    "not a saved plan", str(path), why or "", "make one with: bfinfra plan SITE --out FILE"
                )
            ) from None
        if data["format_version"] != FORMAT_VERSION:
            raise BfinfraError(
                Problem(
                    (
                        f"the plan has format version {data['format_version']}, this bfinfra reads "
                        f"{FORMAT_VERSION}"
                    ),
                    str(path),
                    next="plan again",
                )
            )
        for file, digest in saved.files.items():
            if _digest(Path(file)) != digest:
                raise Diverged(Problem("the site changed after the plan was made", file, next="plan again"))
        return saved

    def check_types(self) -> None:
        """TypeError where something in it has another type than it is written with; KeyError where something
        lacks.
        """
        steps = [step for item in self.items.values() for step in item["steps"]]
        texts = [
            self.site,
            *self.files,
            *self.files.values(),
            *self.items,
            *(item["action"] for item in self.items.values()),
            *(step["title"] for step in steps),
        ]
        if (
            not isinstance(self.destroy, bool)
            or not isinstance(self.items, dict)
            or not all(isinstance(text, str) for text in texts)
        ):
            raise TypeError

    def check(self, fresh: Plan) -> None:
        """Diverged where the fresh plan is not the one that was saved; says which resources differ."""
        now = items_data(fresh)
        problems = [
            Problem(
                f"{address} is not as it was planned",
                why=f"planned: {_said(self.items.get(address))}; now: {_said(now.get(address))}",
                next="plan again",
            )
            for address in dict.fromkeys([*self.items, *now])
            if not agrees(self.items.get(address), now.get(address))
        ]
        if problems:
            raise Diverged(*problems)


def _digest(file: Path) -> str:
    """SHA-256 of a plain file; "" where it is none, or can't be read."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


def _said(item: Any) -> str:
    return f"{item['action']} ({', '.join(s['title'] for s in item['steps'])})" if item else "nothing to do"
