"""The decision: which files shall stand in the context, and what is to be done next."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

from bfinfra.kinds.client_image.dockerfile import FILES, IGNORE, TOKEN, dockerfile
from bfinfra.kinds.client_image.spec import Spec
from bfinfra.kinds.client_image.state import Facts, State
from bfinfra.kinds.client_image.steps import Build, Delete, Push, Render, Seal
from bfinfra.model import kind
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Change, Later


def names(spec: Spec) -> frozenset[str]:
    """Every file that the context may hold for a spec."""
    return frozenset({"Dockerfile", ".dockerignore", f"{FILES}/{spec.package_name}", *(f"{FILES}/{name}" for name in TOKEN)})


def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
    """Render where files differ, build and push what isn't built of them, seal."""
    if spec is None:
        return () if state is None else (Delete(context=state.context, address=around.mark.address),)
    facts = around.facts or Facts()
    _check(name, spec, around, facts)
    wanted, context = _files(name, spec, around, facts), str(spec.context.path)
    going: tuple[kind.Step, ...] = ()
    mark = state.mark if state else None
    if state is not None and state.context != context:
        going, state = (Delete(context=state.context, address=around.mark.address),), None
    world = kind.differences({"files": state.files}, {"files": wanted}) if state else ()
    changes = kind.changes(spec, mark, world)
    found: list[kind.Step] = [*going]
    if state is None or world:
        found.append(Render(context=context, mark=around.mark, dockerfile=dockerfile(spec), package=str(spec.package.path),
                            token=around.needs["token"].get("path") if spec.baked else "", files=wanted, changes=changes))
    found += _made(spec, state, wanted, around, changes)
    if found or mark is None or mark.applied != spec.applied():
        found.append(Seal(context=context, mark=around.mark.seal(spec.applied()), changes=changes))
    return found


def done(spec: Spec, record: str) -> bool:
    """Whether a record of building or pushing is about the image that is wanted; of which content is `steps`' question."""
    return record.partition(" ")[0] == spec.image


def _made(spec: Spec, state: State | None, wanted: Mapping[str, str | Later], around: Around, changes: Sequence[Change]) -> Iterator[kind.Step]:
    """Building and pushing, where that can be done and isn't."""
    facts = around.facts or Facts()
    if not facts.tool or spec.build == "never":
        return
    content, context = _content(wanted), str(spec.context.path)
    made = f"{spec.image} {content}"
    if state is None or state.built != made:
        drift = () if changes else (Change("built", state.built or None if state else None, made),)
        yield Build(context=context, mark=around.mark, image=spec.image, tool=facts.tool, content=content, changes=(*changes, *drift))
    if spec.push and (state is None or state.pushed != made):
        yield Push(context=context, mark=around.mark, image=spec.image, content=content)


def _files(name: str, spec: Spec, around: Around, facts: Facts) -> dict[str, str | Later]:
    """Name → SHA-256 that shall stand there; later where the token can't be read yet."""
    read = facts.read.get(name, {})
    found: dict[str, str | Later] = {"Dockerfile": _sha256(dockerfile(spec)), ".dockerignore": _sha256(IGNORE)}
    package = f"{FILES}/{spec.package_name}"
    found[package] = read[package]
    if spec.baked:
        token = around.needs["token"]
        found |= {f"{FILES}/{file}": read.get(f"{FILES}/{file}") or Later(token.key, "digest") for file in TOKEN}
    return found


def _check(name: str, spec: Spec, around: Around, facts: Facts) -> None:
    if problem := facts.problems.get(name):
        raise Refusal("the client's package can't be used", field="package", why=problem, next="download it again, or correct the path")
    for peer, (other, _) in around.peers.items():
        if other is not None and other.context.path == spec.context.path:
            raise Refusal(f"client_image/{peer} has the same context", field="context", next="give each a folder of its own")


def _content(files: Mapping[str, str | Later]) -> str:
    return _sha256(json.dumps({name: str(digest) for name, digest in files.items()}, sort_keys=True))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
