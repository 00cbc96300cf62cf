"""The kind loaded_image: observe, readiness, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends.images import Images, contents, full_name
from bfinfra.kinds.linux import Answers, Commands
from bfinfra.kinds.machine.base import Adopt, LinuxSoftware, Reading, across, record_texts
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
from bfinfra.kinds.sent_files import CACHE
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Problem, Rejected
from bfinfra.model.kind import Report
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts


class LoadedImage(LinuxSoftware[Spec, State, Found]):
    """A container image loaded onto Linux machines, without a registry."""

    document = Document.ON_KUBERNETES
    step_types = (Load, Adopt, Remove)
    name = role = "loaded_image"

    def __init__(self, hosts: LinuxHosts, images: Images, site: Site) -> None:
        super().__init__(hosts, site)
        self._images = images

    def commands(self, host: str, specs: Sequence[Spec]) -> Commands:
        """Reads its records, and the images that the runtimes have."""
        return LOOK

    def read(self, host: str, answers: Answers) -> Found:
        """From the machine's answers."""
        return read(answers)

    def packages(self, spec: Spec) -> Mapping[str, LocalFile]:
        """Its archive, if it comes from one."""
        return {"archive": spec.archive} if spec.archive else {}

    def states(
        self, wanted: Mapping[str, Spec | None], reading: Reading[Found], *, include_unlisted: bool
    ) -> Mapping[str, State]:
        """By record, as a machine has several images."""
        noted = {
            name
            for each in reading.found.values()
            for name, note in each.records.items()
            if note.mark and note.mark.site == self._site
        }
        states = {}
        for name in dict.fromkeys([*wanted, *(sorted(noted) if include_unlisted else ())]):
            spec = wanted.get(name)
            image = image_of(spec, reading.needs) if spec else ""
            looked = {
                host: _loaded(
                    each,
                    each.records.get(name),
                    spec if spec and host in spec.hosts else None,
                    image,
                    self._site,
                )
                for host, each in reading.found.items()
            }
            if on := {host: loaded for host, loaded in looked.items() if loaded}:
                states[name] = across(State, on, reading.needs)
        return states

    def facts(self, specs: Mapping[str, Spec], reading: Reading[Found]) -> LoadedImageFacts:
        """The images in the local archives."""
        known = super().facts(specs, reading)
        read_here = {
            name: _id(spec.archive.path, spec.image)
            for name, spec in specs.items()
            if spec.archive and spec.image and name not in known.away
        }
        return LoadedImageFacts(
            known.machines,
            known.found,
            {name: id_ for name, (id_, _) in read_here.items()},
            known.away,
            {name: problem for name, (_, problem) in read_here.items() if problem},
        )

    def digest(self, spec: Spec) -> str:
        """Empty, as an archive is compared by the image in it."""
        return ""

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Loads where it is missing, on all such machines in parallel; removes where it is no
        longer wanted.
        """
        return decide.steps(name, spec, state, context)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Always ready, as its runtimes list it."""
        return Readiness(Ready.READY, note=f"it is on {', '.join(spec.hosts)}")

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, as one play on all its machines."""
        match step:
            case Load():
                with (
                    nullcontext(Path(step.archive))
                    if step.archive
                    else self._images.saved(step.image) as archive
                ):
                    self._load(step, archive)
            case Remove(name=name):
                each: dict[str, dict[str, object]] = {}
                for host in step.machines:
                    do, runtime = commands(step.runtimes[host], step.image, ""), step.runtimes[host]
                    each[host] = {
                        "record": record(name),
                        "archive": _sent(name),
                        "used": do.used if runtime else (),
                        "remove": do.remove if runtime else (),
                    }
                self._play(step, each, "remove")
            case Adopt():
                self._play(step, step.records, "begin")
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
        each: dict[str, dict[str, object]] = {}
        for host in step.machines:
            runtime = step.runtimes[host]
            do = commands(runtime, step.image, _sent(step.name))
            noted = (f"runtime={runtime}", f"image={step.image}", f"content={step.content}")
            each[host] = {
                "record": record(step.name),
                "source": archive,
                "archive": _sent(step.name),
                "load": do.load,
                "show": do.show,
                **record_texts(step.mark, *noted),
            }
        self._play(step, each, limit=2 * 3600)


def _sent(name: str) -> str:
    """The path of the archive on a machine while it is loaded."""
    return f"{CACHE}/{name}.tar"


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
    """Return the image that a machine has of a resource: by its record, or an image of that name that bfinfra
    did not load. `spec`: None if it should not be there.
    """
    if noted is not None and (spec or (noted.mark and noted.mark.site == site)):
        return Loaded(noted, found.images.get(noted.runtime, {}).get(full_name(noted.image), ""))
    runtime = found.runtime(spec.runtime) if spec else None
    now = found.images.get(runtime, {}).get(full_name(image), "") if image and runtime else ""
    return Loaded(Noted(None, runtime or "", image), now) if now else None
