"""Loaded images: observe, wait, act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends.images import Images, contents, full_name
from bfinfra.kinds.linux import across, ask, machines
from bfinfra.kinds.machine.loaded_image import decide
from bfinfra.kinds.machine.loaded_image.decide import Load, Remove, image_of
from bfinfra.kinds.machine.loaded_image.runtime import commands
from bfinfra.kinds.machine.loaded_image.spec import Spec
from bfinfra.kinds.machine.loaded_image.state import (
    LOOK,
    Found,
    Loaded,
    LoadedImageFacts,
    Noted,
    State,
    read,
    record,
)
from bfinfra.model import kind
from bfinfra.model.awaited import away
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Problem, Rejected
from bfinfra.model.kind import Observation, Report
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.ssh import LinuxMachine, Play
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts


class LoadedImage(kind.Kind[Spec, State]):
    """A container image loaded onto Linux machines, without a registry."""

    document = Document.ON_KUBERNETES
    step_types = (Load, Remove)

    def __init__(self, hosts: LinuxHosts, images: Images, site: Site) -> None:
        self._hosts, self._images, self._site = hosts, images, site.name

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """One command a machine, and the archives here."""
        there, specs = machines(needs), {name: spec for name, spec in wanted.items() if spec is not None}
        asked = ask(self._hosts, there.values(), lambda _: LOOK)
        found = {host: read(answers) for host, answers in asked.answers.items()}
        noted = {
            name
            for each in found.values()
            for name, note in each.records.items()
            if note.mark and note.mark.site == self._site
        }
        states = {}
        for name in dict.fromkeys([*wanted, *(sorted(noted) if include_unlisted else ())]):
            spec = wanted.get(name)
            image = image_of(spec, needs) if spec else ""
            on = {
                host: loaded
                for host, each in found.items()
                if (
                    loaded := _loaded(
                        each,
                        each.records.get(name),
                        spec if spec and host in spec.hosts else None,
                        image,
                        self._site,
                    )
                )
            }
            if on:
                states[name] = across(State, on, needs)
        gone = {
            name: absent
            for name, spec in specs.items()
            if spec.archive and (absent := away(spec, {"archive": spec.archive}))
        }
        ids: dict[str, str] = {}
        problems: dict[str, str] = {}
        for name, spec in specs.items():
            if spec.archive and spec.image and name not in gone:
                ids[name], problems[name] = _id(spec.archive.path, spec.image)
        facts = LoadedImageFacts(
            there, found, ids, {name: why for name, why in problems.items() if why}, gone
        )
        return Observation(states, facts, asked.blind({name: spec.hosts for name, spec in specs.items()}))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Load where it isn't, on all such machines side by side; remove where it shall not be."""
        return decide.steps(name, spec, state, context)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Its runtimes list it."""
        return Readiness(Ready.READY, note=f"it is on {', '.join(spec.hosts)}")

    def run(self, step: Step, report: Report) -> None:
        """One play on all machines of the step."""
        match step:
            case Load():
                with (
                    nullcontext(Path(step.archive))
                    if step.archive
                    else self._images.saved(step.image) as archive
                ):
                    self._load(step, archive)
            case Remove(name=name):
                each: dict[LinuxMachine, dict[str, object]] = {}
                for host, machine in step.machines.items():
                    do, runtime = commands(step.runtimes[host], step.image, ""), step.runtimes[host]
                    each[machine] = {
                        "record": record(name),
                        "archive": _sent(name),
                        "used": do.used if runtime else (),
                        "remove": do.remove if runtime else (),
                    }
                self._hosts.play(Play("loaded_image", each, tasks="remove")).check()
            case _:
                raise AssertionError(step)

    def _load(self, step: Load, archive: Path) -> None:
        id_, problem = _id(archive, step.image)
        if problem:
            raise Rejected(
                f"{step.image} can't be loaded",
                why=problem,
                next="give the image its registry's name: tools that build add one of their own",
            )
        if step.archive and id_ != step.content:
            raise BfinfraError(
                Problem(f"{step.archive} changed while bfinfra worked with it", next="plan again")
            )
        each: dict[LinuxMachine, dict[str, object]] = {}
        for host, machine in step.machines.items():
            runtime = step.runtimes[host]
            do = commands(runtime, step.image, _sent(step.name))
            note = f"\nruntime={runtime}\nimage={step.image}\ncontent={step.content}"
            each[machine] = {
                "record": record(step.name),
                "source": str(archive),
                "archive": _sent(step.name),
                "load": do.load,
                "show": do.show,
                "mark_open": step.mark.open.encode() + note,
                "mark_sealed": step.mark.encode() + note,
            }
        self._hosts.play(Play("loaded_image", each, limit=2 * 3600)).check()


def _sent(name: str) -> str:
    """Where the archive lies on a machine while it is loaded."""
    return f"/var/cache/bfinfra/{name}.tar"


def _id(archive: Path, image: str) -> tuple[str, str]:
    """The image's id in an archive, and why there is none."""
    try:
        held = contents(archive)
    except (OSError, ValueError) as error:
        return "", str(error.strerror if isinstance(error, OSError) and error.strerror else error)
    if full_name(image) in held:
        return held[full_name(image)], ""
    return "", f"it holds {', '.join(sorted(held)) or 'no image with a name'}, and not {full_name(image)}"


def _loaded(found: Found, noted: Noted | None, spec: Spec | None, image: str, site: str) -> Loaded | None:
    """What a machine has of a resource: by its record, or an image of that name that somebody else brought.
    `spec`: None where it shall not be there.
    """
    if noted is not None and (spec or (noted.mark and noted.mark.site == site)):
        return Loaded(noted, found.images.get(noted.runtime, {}).get(full_name(noted.image), ""))
    runtime = found.runtime(spec.runtime) if spec else None
    now = found.images.get(runtime, {}).get(full_name(image), "") if image and runtime else ""
    return Loaded(Noted(None, runtime or "", image), now) if now else None
