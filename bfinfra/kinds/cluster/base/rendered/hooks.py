"""A chart's hooks that the site lets run: when each runs, what it does, and the steps of it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.pods import job_phase
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED, Id, Manifest, digest, id_of, order
from bfinfra.kinds.cluster.base.rendered.objects import hooks as events
from bfinfra.kinds.cluster.base.rendered.state import EVENTS as REMOVAL
from bfinfra.kinds.cluster.base.rendered.state import State, Thing
from bfinfra.kinds.cluster.base.rendered.steps import (
    AwaitHook,
    DropHook,
    Fields,
    NoteHooks,
    NoteRemovalHooks,
    RunHook,
    RunRemovalHook,
)
from bfinfra.model.compare import Change
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.step import Step

BEFORE, AFTER = "before", "after"
EVENTS = {
    (BEFORE, False): "pre-install",
    (BEFORE, True): "pre-upgrade",
    (AFTER, False): "post-install",
    (AFTER, True): "post-upgrade",
}
"""When Helm runs a hook: by phase, and whether the objects were applied earlier."""
WEIGHT, POLICY = "helm.sh/hook-weight", "helm.sh/hook-delete-policy"
SUCCEEDED = "hook-succeeded"
TEXT = 160  # characters of a hook's command


@dataclass(frozen=True)
class Hook:
    """One object of a chart that Helm runs. `manifest`: as it is sent."""

    manifest: Manifest

    @property
    def id(self) -> Id:
        """The object's id."""
        return id_of(self.manifest)

    @property
    def order(self) -> tuple[int, tuple[int, int, str], str]:
        """Helm's order: by weight, then as objects are created."""
        weight = self._note(WEIGHT)
        return int(weight) if weight.lstrip("+-").isdigit() else 0, order(self.id), self.id.name

    @property
    def temporary(self) -> bool:
        """True if it is deleted once all hooks of its phase succeeded."""
        return SUCCEEDED in self._note(POLICY)

    def runs(self, phase: str, *, again: bool) -> bool:
        """Return whether it runs in this phase. `again`: the objects were applied earlier."""
        return EVENTS[phase, again] in events(self.manifest)

    def _note(self, name: str) -> str:
        return str((self.manifest["metadata"].get("annotations") or {}).get(name) or "")


def refused(manifest: Manifest) -> str:
    """Return why bfinfra can't run a hook, or ""."""
    when = {*events(manifest)}
    if when & {*REMOVAL} and manifest["kind"] == "Secret":
        return "until the removal its content would be readable in the record"
    runs = when & {*EVENTS.values(), *REMOVAL}
    return "" if runs else "bfinfra only runs hooks of installs, upgrades and removals"


def described(manifest: Manifest) -> str:
    """The hook's events and, of a Job or pod, its images and commands, for people."""
    when = ", ".join(sorted(events(manifest)))
    spec = manifest.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or {} if manifest["kind"] == "Job" else spec
    containers = (pod.get("containers") or ()) if manifest["kind"] in ("Job", "Pod") else ()
    runs = "; ".join(" ".join(str(word) for word in _words(each)) for each in containers)
    return f"{when}: {safe(runs, TEXT)}" if runs else when


def _words(container: Manifest) -> tuple[object, ...]:
    return container.get("image"), *(container.get("command") or ()), *(container.get("args") or ())


def digest_of(manifests: Iterable[Manifest]) -> str:
    """The digest of a whole rendering, in any order."""
    return hashlib.sha256(" ".join(sorted(digest(each) for each in manifests)).encode()).hexdigest()


def run_of(phase: str, rendered: str) -> str:
    """The annotation of a hook's object: the phase and rendering that it ran for."""
    return f"{phase} {rendered}"


def steps(
    phase: str, *, hooks: Iterable[Hook], rendered: str, state: State | None, place: Fields
) -> Iterator[Step]:
    """The steps of a phase: each hook in its order, then the note that they ran, then the deletion of those
    that don't stay. () if they ran for this rendering. Raises Refusal for an object of others.
    """
    again = bool(state and state.record and state.record.mark and state.record.mark.applied is not None)
    things = state.things if state else {}
    noted = state.record.hooks.get(phase) if state and state.record else None
    every = sorted(hooks, key=lambda hook: hook.order)
    mine = [hook for hook in every if hook.runs(phase, again=again)]
    home = {name: place[name] for name in ("name", "cluster", "home", "mark")}
    if mine and noted != rendered:
        for hook in mine:
            run = run_of(phase, rendered)
            yield from _one(hook, run, things.get(hook.id), home, partial(RunHook, phase=phase))
        yield NoteHooks(
            record=place["record"],
            namespace=place["namespace"],
            cluster=place["cluster"],
            home=place["home"],
            phase=phase,
            rendered=rendered,
        )
    ran = run_of(phase, rendered)
    for hook in every:
        thing = things.get(hook.id)
        fresh = hook in mine and noted != rendered
        if hook.temporary and (fresh or (thing is not None and _ran_for(thing) == ran)):
            yield DropHook(**home, objects=(hook.id,), changes=(Change(str(hook.id), "ran", None),))


def of_removal(hooks: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """The hooks that run when the objects are deleted, as the record has them."""
    return tuple(each for each in hooks if {*events(each)} & {*REMOVAL})


def removal_manifest(each: Id, event: str, hooks: Sequence[Manifest]) -> Manifest:
    """A hook of a removal as it is sent, without its mark. `hooks`: those of the record, as the chart may not
    be there any more.
    """
    found = {id_of(hook): hook for hook in hooks}[each]
    metadata = found["metadata"]
    notes = {**(metadata.get("annotations") or {}), RENDERED: run_of(event, digest_of(hooks))}
    return {**found, "metadata": {**metadata, "annotations": notes}}


def removal_steps(event: str, state: State, place: Fields) -> Iterator[Step]:
    """The steps of the hooks of one event of a removal: each in its order, the note that they ran, and the
    deletion of what they left. () if there is none. Raises Refusal for an object of others.
    """
    hooks = state.record.removal if state.record is not None and not state.record.going else ()
    mine = sorted((Hook(each) for each in hooks if event in events(each)), key=lambda hook: hook.order)
    if state.record is None or not mine:
        return
    rendered = digest_of(hooks)
    home = {name: place[name] for name in ("name", "cluster", "home", "mark")}
    record: Fields = {"record": place["record"], "namespace": state.namespace}
    noted = state.record.hooks.get(event) == rendered
    if not noted:
        make = partial(RunRemovalHook, phase=event, **record)
        for hook in mine:
            yield from _one(hook, run_of(event, rendered), state.things.get(hook.id), home, make)
        yield NoteRemovalHooks(
            **record, cluster=place["cluster"], home=place["home"], phase=event, rendered=rendered
        )
    for hook in reversed(mine):
        if not noted or hook.id in state.things:
            yield DropHook(**home, objects=(hook.id,), changes=(Change(str(hook.id), "ran", None),))


def _one(
    hook: Hook, run: str, thing: Thing | None, home: Fields, make: Callable[..., Step]
) -> Iterator[Step]:
    """The steps of one hook. `run`: the phase and rendering that it runs for."""
    changes = (Change(str(hook.id), None, f"runs: {described(hook.manifest)}"),)
    if thing is not None and (thing.mark is None or thing.mark.owner != home["mark"].owner):
        raise taken(hook.id)
    if thing is not None and not thing.going and _ran_for(thing) == run and not _failed(hook.id, thing):
        if not finished(hook.id, thing):
            yield AwaitHook(**home, objects=(hook.id,), changes=changes)
        return
    if thing is not None:
        yield DropHook(**home, objects=(hook.id,), changes=(Change(str(hook.id), "of an earlier run", None),))
    yield make(**home, objects=(hook.id,), changes=changes)


def taken(each: Id) -> Refusal:
    """The refusal for an object of others in a hook's place."""
    return Refusal(
        f"the cluster has {each} already, which a hook would replace",
        why="this resource did not make it",
        next="look at it, delete it, and apply again",
    )


def finished(each: Id, thing: Thing) -> bool:
    """Return whether a hook's object has done its work: a Job or pod succeeded, another object exists."""
    if each.type == ("batch", "Job"):
        return job_phase(thing.manifest)[0] == "finished"
    if each.type == ("", "Pod"):
        return _phase(thing) == "Succeeded"
    return True


def _failed(each: Id, thing: Thing) -> bool:
    if each.type == ("batch", "Job"):
        return job_phase(thing.manifest)[0] == "failed"
    return each.type == ("", "Pod") and _phase(thing) == "Failed"


def _phase(thing: Thing) -> str:
    return str((thing.manifest.get("status") or {}).get("phase") or "")


def _ran_for(thing: Thing) -> str:
    return str((thing.manifest["metadata"].get("annotations") or {}).get(RENDERED) or "")


def unfinished(state: State) -> dict[Id, Thing]:
    """The objects of hooks whose phase is not noted as done: they alone are waited for."""
    done = {run_of(phase, each) for phase, each in (state.record.hooks if state.record else {}).items()}
    return {
        each: thing
        for each, thing in state.things.items()
        if events(thing.manifest)
        and not _crd(thing)
        and not _of_removal(thing)
        and _ran_for(thing) not in done
    }


def of_ended_removal(state: State) -> list[Id]:
    """The objects of hooks of a removal that somebody ended, so that the objects stay."""
    return [each for each, thing in state.things.items() if _of_removal(thing)]


def _of_removal(thing: Thing) -> bool:
    return _ran_for(thing).partition(" ")[0] in REMOVAL


def unfinished_of_removal(state: State) -> dict[Id, Thing]:
    """The objects of hooks of a removal that has begun, until it is noted that they ran."""
    if state.record is None:
        return {}
    rendered = digest_of(state.record.removal)
    runs = {run_of(each, rendered) for each in REMOVAL if state.record.hooks.get(each) != rendered}
    return {each: thing for each, thing in state.things.items() if _ran_for(thing) in runs}


def _crd(thing: Thing) -> bool:
    return {*events(thing.manifest)} == {"crd-install"}
