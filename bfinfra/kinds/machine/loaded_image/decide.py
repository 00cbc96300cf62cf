"""The steps of an image on machines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bfinfra.kinds.machine.base import OnMachines, adopted, others, set_up_changes, while_away
from bfinfra.kinds.machine.loaded_image.runtime import Runtime
from bfinfra.kinds.machine.loaded_image.spec import BUILDERS, Spec
from bfinfra.kinds.machine.loaded_image.state import Found, Loaded, LoadedImageFacts, State, record
from bfinfra.model import compare
from bfinfra.model.awaited import Awaited
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.step import Step


@dataclass(frozen=True, kw_only=True)
class Load(OnMachines):
    """load {image} onto {names}"""

    name: str
    image: str
    content: str | Unknown
    archive: str
    """The archive's path on this machine, "" for an image that is built and saved here."""
    runtimes: Mapping[str, Runtime]
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Remove(OnMachines):
    """remove {image} from {names}"""

    name: str
    image: str
    runtimes: Mapping[str, str]
    """By machine: the runtime that has the image, "" if none has it."""


def builder(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> ResolvedRef | None:
    """The resource that builds the image, None for one from an archive."""
    return next(
        (needs[key] for each in BUILDERS if spec.built and (key := Key(each, spec.built)) in needs), None
    )


def image_of(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> str:
    """The image's name, "" if it isn't known because its builder left the site."""
    need = builder(spec, needs)
    return spec.image or (need.spec.image if need and need.spec else "")


def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: load where the image is missing or another, remove where it is no longer wanted."""
    if spec is None:
        return () if state is None else (_remove(name, state, tuple(state.on)),)
    if state is not None and compare.adopting(state.mark):
        notes = {host: _as_it_is(found) for host, found in state.on.items() if host in spec.hosts}
        return adopted(spec, state, context, record(name), notes)
    installed = [each.content for host, each in state.on.items() if host in spec.hosts] if state else []
    return while_away(context, installed, lambda context: tuple(_steps(name, spec, state, context)), Load)


def _steps(name: str, spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: LoadedImageFacts = context.facts
    on = state.on if state else {}
    needs = {need.key: need for need in context.needs.values()}
    image, content = image_of(spec, needs), _content(name, spec, context)
    _check(name, spec, on, facts, context)
    runtimes = {
        host: runtime
        for host in spec.hosts
        if (runtime := facts.found.get(host, Found()).runtime(spec.runtime))
    }
    mark = context.mark.committed(spec.applied())
    then = {
        host: {"image": image, "content": _short(content), "runtime": runtimes.get(host)}
        for host in spec.hosts
    }
    now = {host: _shown(on.get(host)) for host in spec.hosts}
    hosts = [
        host for host in spec.hosts if host not in on or on[host].mark != mark or now[host] != then[host]
    ]
    if hosts:
        yield Load(
            name=name,
            names=", ".join(hosts),
            image=image,
            content=content,
            archive=str(spec.archive.path) if spec.archive else "",
            mark=mark,
            changes=set_up_changes(spec, state, now, then),
            machines=facts.of(hosts),
            runtimes={host: runtimes[host] for host in hosts if host in runtimes},
        )
    leaving = tuple(host for host in on if host not in spec.hosts)
    if leaving and state:
        yield _remove(name, state, leaving)


def _content(name: str, spec: Spec, context: PlanContext) -> str | Unknown:
    """The image's content: its id in the archive, or what its builder notes."""
    if spec.archive is not None:
        return str(context.facts.packages.get(name, ""))
    need = context.needs["built"]
    if need.state is None:
        return Unknown(need.key, "built")
    made = need.state.due or need.state.built
    if need.state.built != made or not made:
        _check_builds(need)
    image, _, content = made.partition(" ")
    return content if image == need.spec.image and content else Unknown(need.key, "built")


def _check_builds(need: ResolvedRef) -> None:
    if need.state.tool and need.spec.build != "never":
        return
    raise Awaited(
        f"{need.key} is not built on this machine",
        field="built",
        why=need.state.undone(need.spec.build),
        next=(
            f"build it elsewhere, save it there (docker save --output FILE {need.spec.image}), and give "
            "archive and image instead of built"
        ),
    )


def _check(
    name: str, spec: Spec, on: Mapping[str, Loaded], facts: LoadedImageFacts, context: PlanContext
) -> None:
    if problem := facts.problems.get(name):
        raise Refusal(
            f"{spec.archive.text if spec.archive else name} can't be loaded",
            field="archive",
            why=problem,
            next="write it with: docker save --output FILE IMAGE",
        )
    if theirs := others(on, context.mark):
        raise Refusal(
            f"the image on {', '.join(theirs)} was not loaded for {context.mark.address}",
            field="hosts",
            why="it was pulled, loaded by hand, or by another site",
            next="remove it there, or name other machines",
        )
    for host in spec.hosts:
        if host not in facts.found:
            continue
        found = facts.found[host]
        runtime = found.runtime(spec.runtime)
        if runtime is None or runtime not in found.images:
            why = (
                found.silent.get(runtime, "")
                if runtime
                else "; ".join(f"{each}: {words}" for each, words in found.silent.items())
            )
            raise Refusal(
                (
                    f"{runtime or 'no container runtime'} {'does not answer' if runtime else 'answers'} on "
                    f"{host}"
                ),
                field="runtime" if spec.runtime else "hosts",
                why=why,
                next="start it there, or name the machine's own in runtime",
            )


def _as_it_is(found: Loaded) -> tuple[str, ...]:
    """The lines of the record of an image that somebody else loaded: its content is what is listed."""
    noted = found.noted
    return (f"runtime={noted.runtime}", f"image={noted.image}", f"content={found.now}", f"listed={found.now}")


def _short(content: str | Unknown) -> str:
    return content.removeprefix("sha256:")[:12] if isinstance(content, str) else str(content)


def _shown(found: Loaded | None) -> dict[str, str | None]:
    """The fields of one machine, for people."""
    if found is None:
        return {"image": None, "content": None, "runtime": None}
    return {
        "image": found.noted.image or None,
        "content": _short(found.content) or None,
        "runtime": found.noted.runtime or None,
    }


def _remove(name: str, state: State, hosts: tuple[str, ...]) -> Remove:
    on = {host: state.on[host] for host in hosts}
    image = next((each.noted.image for each in on.values() if each.noted.image), "")
    return Remove(
        name=name,
        names=", ".join(hosts),
        image=image or "the image",
        machines={host: state.machines[host] for host in hosts},
        runtimes={host: each.noted.runtime if each.now else "" for host, each in on.items()},
    )
