"""The steps of a client image, and the files of its context."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

from bfinfra.kinds.image.client_image.dockerfile import FILES, IGNORE, TOKEN, dockerfile, dockerfile_before
from bfinfra.kinds.image.client_image.spec import Spec
from bfinfra.kinds.image.client_image.state import ClientImageFacts, State
from bfinfra.kinds.image.client_image.steps import Build, Commit, Delete, Push, Render
from bfinfra.model import compare
from bfinfra.model.awaited import Absent, held, until
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.step import Step


def names(spec: Spec) -> frozenset[str]:
    """Every file that the context of a spec may hold."""
    return frozenset(
        {
            "Dockerfile",
            ".dockerignore",
            f"{FILES}/{spec.package_name}",
            *(f"{FILES}/{name}" for name in TOKEN),
        }
    )


def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """Writes files that differ, builds and pushes if the last build was of other files, notes
    what was done.
    """
    if spec is None:
        return () if state is None else (Delete(context=state.context, address=context.mark.address),)
    if state is not None and compare.adopting(state.mark):
        whole, changes = context.mark.committed(spec.applied()), compare.changes(spec, state.mark)
        return (Commit(context=state.context, mark=whole, changes=changes),)
    facts = context.facts or ClientImageFacts()
    _check(name, spec, facts)
    mark, folder = state.mark if state else None, str(spec.context.path)
    live = state.files if state is not None and state.context == folder else {}
    wanted = _files(name, spec, context, facts, _unmoved(spec, mark, live))
    if (before := {**wanted, "Dockerfile": _sha256(dockerfile_before(spec))}) == live:
        wanted = before  # written by an earlier release: to build it again would only change a comment
    going: tuple[Step, ...] = ()
    if state is not None and state.context != folder:
        going, state = (Delete(context=state.context, address=context.mark.address),), None
    world = compare.differences({"files": state.files}, {"files": wanted}) if state else ()
    changes = compare.changes(spec, mark, world)
    found: list[Step] = [*going]
    if state is None or world:
        found.append(
            Render(
                context=folder,
                mark=context.mark,
                dockerfile=dockerfile(spec),
                package=str(spec.package.path),
                files=wanted,
                changes=changes,
                token=context.needs["token"].get("path") if spec.baked and spec.token else "",
                giver=facts.machines.get(spec.client_files.host) if spec.client_files else None,
                given=spec.client_files.paths if spec.client_files else {},
            )
        )
    found += _made(spec, state, wanted, context, changes)
    if found or mark is None or mark.applied != spec.applied():
        found.append(Commit(context=folder, mark=context.mark.committed(spec.applied()), changes=changes))
    if isinstance(problem := facts.problems.get(name), Absent) and any(
        isinstance(step, Render) for step in found
    ):
        raise held(problem, "package", found)
    return found


def done(spec: Spec, record: str) -> bool:
    """Return whether a record of a build or push is of the desired image. `steps` compares its content."""
    return record.partition(" ")[0] == spec.image


def _made(
    spec: Spec,
    state: State | None,
    wanted: Mapping[str, str | Unknown],
    context: PlanContext,
    changes: Sequence[Change],
) -> Iterator[Step]:
    """The steps that build and push, as far as that is possible and not done."""
    facts = context.facts or ClientImageFacts()
    if not facts.tool or spec.build == "never":
        return
    content, folder = _content(wanted), str(spec.context.path)
    made = f"{spec.image} {content}"
    if state is None or state.built != made:
        drift = () if changes else (Change("built", state.built or None if state else None, made),)
        yield Build(
            context=folder,
            mark=context.mark,
            image=spec.image,
            tool=facts.tool,
            content=content,
            changes=(*changes, *drift),
        )
    if spec.push and (state is None or state.pushed != made):
        yield Push(context=folder, mark=context.mark, image=spec.image, content=content)


def _unmoved(spec: Spec, mark: Mark | None, live: Mapping[str, str]) -> dict[str, str]:
    """The files in the context whose source the site names as it did at the last apply. They count as right
    while their source is not there.
    """
    now, applied = spec.applied(), (mark.applied if mark else None) or {}
    same = {"package": (f"{FILES}/{spec.package_name}",), "token": tuple(f"{FILES}/{file}" for file in TOKEN)}
    files = [
        file
        for field, those in same.items()
        if now.get(field) and applied.get(field) == now[field]
        for file in those
    ]
    return {file: live[file] for file in files if file in live}


def _files(
    name: str, spec: Spec, context: PlanContext, facts: ClientImageFacts, unmoved: Mapping[str, str]
) -> dict[str, str | Unknown]:
    """Name → SHA-256 of the file that the context must have; Unknown if its source doesn't exist yet."""
    read = {**unmoved, **facts.read.get(name, {})}
    found: dict[str, str | Unknown] = {
        "Dockerfile": _sha256(dockerfile(spec)),
        ".dockerignore": _sha256(IGNORE),
    }
    package = f"{FILES}/{spec.package_name}"
    found[package] = read.get(package) or until(spec.package)
    if spec.baked:
        later = _later(spec, context)
        found |= {f"{FILES}/{file}": read.get(f"{FILES}/{file}") or later for file in TOKEN}
    return found


def _later(spec: Spec, context: PlanContext) -> Unknown:
    """The Unknown until the token's files are known."""
    if spec.client_files:
        return Unknown(context.needs["client_files.host"].key, "digest")
    token = context.needs["token"]
    return until(token.spec.source.file) if token.spec else Unknown(token.key, "digest")


def _check(name: str, spec: Spec, facts: ClientImageFacts) -> None:
    if isinstance(problem := facts.problems.get(name), str):
        raise Refusal(
            "the client's package can't be used",
            field="package",
            why=problem,
            next="download it again, or correct the path",
        )
    if spec.client_files and spec.client_files.host in facts.machines:
        spec.client_files.check(
            {file: digest for file in TOKEN if (digest := facts.read.get(name, {}).get(f"{FILES}/{file}"))}
        )


def _content(files: Mapping[str, str | Unknown]) -> str:
    return _sha256(json.dumps({name: str(digest) for name, digest in files.items()}, sort_keys=True))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
