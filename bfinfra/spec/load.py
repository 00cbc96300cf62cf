"""Files → Site: read, merge, validate, check references. Contacts no server; reports all problems at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bfinfra import kinds as registry
from bfinfra.model.drift import DriftSettings
from bfinfra.model.errors import Place, Problem, SiteError, Warned
from bfinfra.model.names import LABEL_VALUE, LABEL_VALUE_RULE
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site, VCenterSettings
from bfinfra.model.sources import Sources
from bfinfra.model.variant import PLAIN, Variant
from bfinfra.spec import conflicts, files, missing, references
from bfinfra.spec.fields import validated
from bfinfra.spec.merge import Block, Blocks
from bfinfra.spec.places import SourcePlaces, place_in
from bfinfra.spec.resolve import resolved
from bfinfra.spec.vcenter import with_server

Kinds = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The context in which a block is read: that of its references, and the list of problems."""

    env: Mapping[str, str]
    stand_ins: Path | None
    confined: bool
    problems: list[Problem]

    def read(self, model: object, topic: str, block: Block | None) -> Any | None:
        return (
            None
            if block is None
            else validated(
                model,
                topic,
                block,
                Sources(block.folder, self.env, self.stand_ins, self.confined),
                self.problems,
            )
        )


def load(
    paths: Sequence[Path],
    *,
    variant: Variant = PLAIN,
    env: Mapping[str, str] | None = None,
    stand_ins: Path | None = None,
    kinds: Kinds | None = None,
) -> Site:
    """The site in these files and folders.

    `variant`: its overlays and values; `env`: what `{env: NAME}` reads, by default the process's own;
    `stand_ins`: a folder with replacements for the files that a site names; `kinds`: name → Kind class, by
    default the registry. Raises SiteError with every problem of every file.
    """
    reading = _Reading(os.environ if env is None else env, stand_ins, confined=False, problems=[])
    return _site(tuple(Path(path) for path in paths), variant, reading, kinds)


def load_confined(path: Path, *, env: Mapping[str, str], stand_ins: Path | None = None) -> Site:
    """The site in a file that somebody else has written: it may name only what is below the file's folder and
    in `env`, and runs nothing. Raises SiteError.
    """
    return _site((path,), PLAIN, _Reading(env, stand_ins, confined=True, problems=[]), None)


def _site(paths: tuple[Path, ...], variant: Variant, reading: _Reading, kinds: Kinds | None) -> Site:
    known = registry.names() if kinds is None else kinds
    found = resolved(paths, variant, known, reading.problems)
    documents, blocks, sound = found.documents, found.blocks, found.sound
    name = _name(sound, documents, reading.problems) if "site" not in found.broken else ""
    vcenter = with_server(
        reading.read(VCenterSettings, "vcenter", block := sound.settings.get("vcenter")),
        reading.env,
        block.entry.at if block else "",
        reading.problems,
    )
    pepper = reading.read(Secret, "pepper", sound.settings.get("pepper"))
    drift = reading.read(DriftSettings, "drift", sound.settings.get("drift")) or DriftSettings()
    resources = dict(
        _resources(sound, reading, registry.spec if kinds is None else lambda name: kinds[name].Spec)
    )
    reading.problems.extend(references.check(resources, blocks.resources))
    disputed = [
        (each.stops, each.located(lambda key, field: place_in(blocks.resources[key], field)))
        for each in conflicts.check(resources)
    ]
    reading.problems.extend(problem for stops, problem in disputed if stops)
    if reading.problems:
        raise SiteError(*_sorted(reading.problems, [document.path for document in documents]))
    digests = [(document.path, document.digest) for document in documents]
    site = Site(
        name,
        vcenter,
        resources,
        SourcePlaces(blocks),
        dict(digests[: found.own]),
        pepper,
        stand_ins=reading.stand_ins,
        drift=drift,
        paths=paths,
        variant=variant,
        variant_files=dict(digests[found.own :]),
    )
    nowhere = (each.problem for each in missing.references(site))
    warned = (*found.unused, *nowhere, *_warnings(site), *(problem for _, problem in disputed))
    return replace(site, warnings=tuple(Warned(problem) for problem in warned))


def missing_references(site: Site, kinds: Collection[str] | None = None) -> tuple[Problem, ...]:
    """Problems for references that lead nowhere: unset variables, missing files. They are warnings until a
    run needs them.

    `kinds`: only the site's settings and resources of these kinds. Files that may be brought later are left
    out.
    """
    found = (each for each in missing.references(site) if not each.awaited)
    return tuple(
        each.problem for each in found if kinds is None or each.key is None or each.key.kind in kinds
    )


def needed_references(site: Site, wanted: Specs, kinds: Collection[str] | None = None) -> tuple[Problem, ...]:
    """Problems for the references that a run on these resources always needs. Others are checked when a step
    needs them.

    `kinds`: only resources of these kinds.
    """
    settings = used_settings(site, wanted)
    found = (each for each in missing.references(site) if not each.awaited)
    return tuple(
        each.problem
        for each in found
        if (each.field.startswith(settings) if each.key is None else kinds is None or each.key.kind in kinds)
    )


def used_settings(site: Site, wanted: Specs) -> tuple[str, ...]:
    """The settings of a site that a run on these resources uses. Only the webhook uses `drift.notify`."""
    used = ["vcenter.password", "vcenter.trust"]
    if any(key.kind == "supervisor_namespace" for key in site.resources):
        used.append("vcenter.supervisor_trust")
    if any(_digests(spec) for spec in wanted.values()):
        used.append("pepper")
    return tuple(used)


def _digests(spec: Any) -> bool:
    """Return whether a mark holds a digest of one of its secrets."""
    value = getattr(spec, spec.digested) if spec.digested else None
    return any(
        isinstance(each, Secret) for each in (value.values() if isinstance(value, Mapping) else (value,))
    )


def awaited_files(site: Site) -> tuple[Problem, ...]:
    """Problems for files that are missing and may be brought later; what needs such a file waits for it."""
    return tuple(each.problem for each in missing.references(site) if each.awaited)


def _resources(blocks: Blocks, reading: _Reading, spec_of: Callable[[str], Any]) -> Iterator[tuple[Key, Any]]:
    for key, block in blocks.resources.items():
        model = spec_of(key.kind)
        if not re.fullmatch(model.name_pattern, key.name):
            reading.problems.append(
                Problem(
                    f"{key.name} can't be the name of a {key.kind}",
                    block.entry.at,
                    f"allowed: {model.name_rule}",
                    "choose another name",
                )
            )
        if (spec := reading.read(model, str(key), block)) is not None:
            yield key, spec


def _warnings(site: Site) -> Iterator[Problem]:
    """The kinds' warnings about fields that are allowed but risky."""
    for key, spec in site.resources.items():
        for field, problem in spec.warnings():
            yield replace(problem, what=f"{key}: {problem.what}", where=site.place(key, field) or str(key))


def _name(blocks: Blocks, documents: Collection[files.SiteDocument], problems: list[Problem]) -> str:
    block = blocks.settings.get("site")
    if block is None:
        if documents and (any(document.root for document in documents) or not problems):
            first = next(iter(documents)).path
            problems.append(
                Problem(
                    "the site has no name",
                    Place(first, 1, 1),
                    "no file says site:",
                    "add site: a-name; every object that bfinfra makes carries it",
                )
            )
        return ""
    name = block.data()
    if not isinstance(name, str) or not re.fullmatch(LABEL_VALUE, name):
        problems.append(Problem("site: expected a name", block.entry.place, f"allowed: {LABEL_VALUE_RULE}"))
    return str(name)


def _sorted(problems: Sequence[Problem], order: list[Path]) -> list[Problem]:
    """The problems by file, line and column; first those without a place, last those in files that the site
    names.
    """
    positions = {file: number for number, file in enumerate(order)}

    def key(problem: Problem) -> tuple[int, int, int]:
        at = problem.where
        return (
            (positions.get(at.file, len(order)), at.line, at.column) if isinstance(at, Place) else (-1, 0, 0)
        )

    return sorted(dict.fromkeys(problems), key=key)
