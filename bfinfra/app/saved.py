"""Saved plans: what was planned, for which site, from which files. Exactly this plan is run, on this machine
or another: a plan names files by their paths below the site's folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bfinfra.app.saved_files import changed, contents, folder_of, relative
from bfinfra.app.saved_plan import plan_of
from bfinfra.formats.shell import word
from bfinfra.model.errors import BfinfraError, Diverged, Problem
from bfinfra.model.files import PRIVATE, write_named
from bfinfra.model.plan import Plan, agrees
from bfinfra.model.records import dataclass
from bfinfra.model.redact import clean
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, small
from bfinfra.model.variant import Given, Variant
from bfinfra.render import data as documents
from bfinfra.spec.leads import walk

FORMAT_VERSION, TYPE = 2, "saved_plan"
LARGEST = 64 << 20  # bytes of a saved plan
AGAIN = "plan again: bfinfra plan SITE --out FILE"


def save_plan(path: Path, site: Site, plan: Plan, *, destroy: bool = False) -> None:
    """Write a plan for a later apply, to a file that only its owner can read. Raises BfinfraError."""
    base = folder_of(site).absolute()
    data = {
        "format_version": FORMAT_VERSION,
        "type": TYPE,
        "site": plan.site,
        "destroy": destroy,
        "folder": str(base),
        "paths": [relative(each, base) for each in site.paths],
        "overlays": [relative(each, base) for each in site.variant.overlays],
        "values": [relative(each, base) for each in site.variant.value_files],
        "set": {each.name: each.data for each in site.variant.given},
        "targets": [str(key) for key in plan.partial.targets] if plan.partial else [],
        "files": _digests(site, base),
        "contents": contents(site, base),
        "plan": portable(site, plan),
    }
    write_named(path, json.dumps(clean(data), indent=1), PRIVATE)


def portable(site: Site, plan: Plan) -> dict[str, Any]:
    """A plan as data, without secrets and without paths of this machine: each path is as in the site."""
    names = {str(folder_of(site).absolute()): "."}
    if site.stand_ins:
        names[str(site.stand_ins)] = "."
    names |= {str(value.path): value.text for _, value in walk(site) if isinstance(value, LocalFile)}
    alike = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w./-])(?:{alike})(?![\w-]|\.\w)")
    found: dict[str, Any] = _replaced(clean(documents.plan(plan)), pattern, names)
    return found


def _replaced(value: object, pattern: re.Pattern[str], names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda found: names[found[0]], value)
    if isinstance(value, Mapping):
        return {name: _replaced(each, pattern, names) for name, each in value.items()}
    return [_replaced(each, pattern, names) for each in value] if isinstance(value, list) else value


def _digests(site: Site, base: Path) -> dict[str, str]:
    return {relative(file, base): each for file, each in {**site.files, **site.variant_files}.items()}


def is_plan(path: Path) -> bool:
    """Return whether a file is a saved plan rather than a site."""
    if not path.is_file():
        return False
    with path.open("rb") as start:
        return start.read(1) == b"{" and b'"format_version"' in start.read(200)


@dataclass(frozen=True)
class SavedPlan:
    """A plan that was read. `paths`, `overlays`, `values` and `files` are below `folder`, where it was
    made.
    """

    path: Path
    site: str
    destroy: bool
    folder: str
    paths: tuple[str, ...]
    overlays: tuple[str, ...]
    values: tuple[str, ...]
    given: Mapping[str, Any]
    targets: tuple[Key, ...]
    files: Mapping[str, str]
    contents: Mapping[str, str]
    plan: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> SavedPlan:
        """The saved plan in a file. Raises BfinfraError if it is none, or of another version."""
        try:
            data = json.loads(small(path, LARGEST))
            if problem := _other(path, data):
                raise BfinfraError(problem)
            saved = cls(
                path,
                _text(data["site"]),
                _switch(data["destroy"]),
                _text(data["folder"]),
                _texts(data["paths"]),
                _texts(data["overlays"]),
                _texts(data["values"]),
                {_text(name): each for name, each in data["set"].items()},
                tuple(Key.parse(each) for each in data["targets"]),
                _digests_of(data["files"]),
                _digests_of(data["contents"]),
                data["plan"],
            )
            saved.items()
            plan_of(saved.plan)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BfinfraError(
                Problem(
                    "not a saved plan", str(path), _why(error), "make one with: bfinfra plan SITE --out FILE"
                )
            ) from None
        return saved

    def at(self, folder: Path | None) -> tuple[list[Path], Variant]:
        """The site's files and its variant. `folder`: the site's folder now, by default where the plan was
        made. Raises BfinfraError if it is missing, Diverged if one of its files is; `check_site` finds
        changed ones.
        """
        base = folder or Path(self.folder)
        if not base.is_dir():
            raise BfinfraError(
                Problem(
                    "the site's folder is not here",
                    str(base),
                    "" if folder else "the plan was made there",
                    f"name it: bfinfra apply {word(self.path)} --site FOLDER",
                )
            )
        if problems := [changed(base / name, name) for name in self.files if not (base / name).is_file()]:
            raise Diverged(*problems)
        given = tuple(Given(name, each, f"--set {name}") for name, each in self.given.items())
        variant = Variant(
            tuple(base / each for each in self.overlays), tuple(base / each for each in self.values), given
        )
        return [base / each for each in self.paths], variant

    def check_site(self, site: Site) -> None:
        """Raises Diverged if the site differs from the one that was planned."""
        base = folder_of(site)
        now = [_digests(site, base), contents(site, base)]
        problems = [
            changed(base / name, name)
            for before, after in zip((self.files, self.contents), now, strict=True)
            for name in dict.fromkeys([*before, *after])
            if before.get(name) != after.get(name)
        ]
        if problems:
            raise Diverged(*problems)

    def check(self, site: Site, fresh: Plan) -> None:
        """Raises Diverged with the resources whose new plan differs from the saved one."""
        before, now = self.items(), dict(_pending(portable(site, fresh)))
        problems = [
            Problem(
                f"{address} is no longer as planned",
                why=f"planned: {_briefly(before.get(address))}; now: {_briefly(now.get(address))}",
                next=AGAIN,
            )
            for address in dict.fromkeys([*before, *now])
            if not agrees(before.get(address), now.get(address))
        ]
        if problems:
            raise Diverged(*problems)

    def items(self) -> dict[str, Any]:
        """Address → action and steps, of what writes. Raises KeyError or TypeError for a document that is no
        plan.
        """
        return dict(_pending(self.plan))


def _pending(plan: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in plan["items"]:
        if item["steps"] and item["held"] is None:
            steps = [
                {name: step[name] for name in ("step", "title", "fields", "changes")}
                for step in item["steps"]
            ]
            yield _text(item["address"]), {"action": _text(item["action"]), "steps": steps}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _texts(values: list[object]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _digests_of(data: Mapping[object, object]) -> dict[str, str]:
    return {_text(name): _text(each) for name, each in data.items()}


def _why(error: Exception) -> str:
    """Return why a file could not be read as a plan."""
    if isinstance(error, OSError):
        return error.strerror or ""
    return "it is not JSON" if isinstance(error, ValueError) else "a part of it is missing or damaged"


def _other(path: Path, data: Any) -> Problem | None:
    """Return why a document is not a plan of this version."""
    version, kind = data["format_version"], data.get("type", TYPE)
    if kind != TYPE:
        return Problem(
            f"not a saved plan, but a {kind} as it is printed",
            str(path),
            "a printed plan does not contain what it was made from",
            "make one with: bfinfra plan SITE --out FILE",
        )
    if version != FORMAT_VERSION:
        why = f"the plan has format version {version}, this bfinfra reads {FORMAT_VERSION}"
        return Problem(why, str(path), "another version of bfinfra made it", AGAIN)
    return None


def _briefly(item: Any) -> str:
    return f"{item['action']} ({', '.join(s['title'] for s in item['steps'])})" if item else "nothing to do"
