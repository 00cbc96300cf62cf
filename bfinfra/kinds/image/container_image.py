"""A container image that is built from a folder with a Dockerfile, and pushed: one that is published nowhere.
(Bitfusion on Kubernetes, Option 2: building images from source.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator

from bfinfra.backends.images import Images, Recipe
from bfinfra.kinds.capabilities import image
from bfinfra.kinds.image.base import Made, builders
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.awaited import Absent, absent, held
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import Problem, Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.names import ImageName
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import Use
from bfinfra.model.sources import LocalFile
from bfinfra.model.step import Step

Argument = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Spec(resource.Spec):
    """The desired state of one image."""

    name_pattern = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
    name_rule = "letters, digits, dots, dashes and underscores, at most 100"

    awaits: ClassVar = {"source": "get the folder, such as a clone of the repository"}

    image: ImageName
    """Name and tag of the image. A new build under the same tag is not rolled out, as pods keep what they
    pulled: give it a new tag.
    """
    source: LocalFile
    """Folder to build from, such as a clone of the plug-in's repository. bfinfra writes nothing there. A
    change in it, except in `.git`, makes a new build.
    """
    dockerfile: str = "Dockerfile"
    """Path of its Dockerfile in that folder."""
    arguments: dict[Argument, str] = Field(default_factory=dict)
    """Build arguments, such as the address of a mirror. No secrets: they stay in the image."""
    build: Literal["if_possible", "never"] = "if_possible"
    """if_possible: build if docker, podman or buildah works; never: only report the commands."""
    push: bool = True
    """Push the image after a build, with the account that the tool is logged in with."""

    @field_validator("dockerfile")
    @classmethod
    def _inside(cls, path: str) -> str:
        if not path or path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise ValueError("expected a path in source, such as webhook/build/Dockerfile")
        return path

    def takes(self, name: str) -> Iterator[Taken]:
        """The image's name, which two resources can't both push."""
        yield conflict.thing("image", f"the image {self.image}", "image")

    @property
    def recipe(self) -> Recipe:
        """The inputs of its build."""
        return Recipe(
            self.source.path, "" if self.dockerfile == "Dockerfile" else self.dockerfile, self.arguments
        )

    def content(self, files: str) -> str:
        """One digest of everything that decides the result, except base images."""
        return hashlib.sha256(
            json.dumps([files, self.dockerfile, self.arguments], sort_keys=True).encode()
        ).hexdigest()

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The image."""
        yield image(self.image)


@dataclass(frozen=True, kw_only=True)
class State(Made):
    """The record on this machine."""


@dataclass(frozen=True)
class ContainerImageFacts:
    """The tool that builds here; by resource the digest of its folder, or why it can't be read."""

    tool: str = ""
    sources: Mapping[str, str | Problem] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Build(Step):
    """build {image} of {source} with {tool}"""

    rights = ()
    name: str
    mark: Mark
    image: str
    source: str
    tool: str
    recipe: Recipe
    content: str


@dataclass(frozen=True, kw_only=True)
class Push(Step):
    """push {image}"""

    rights = ()
    name: str
    mark: Mark
    image: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Commit(Step):
    """note what was made of {name}"""

    rights = ()
    name: str
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Forget(Step):
    """forget {name}; images stay in the registry"""

    rights = ()
    uses = (Use.DESTROY,)
    name: str


class ContainerImage(kind.Kind[Spec, State]):
    """A container image that is built from a folder with a Dockerfile."""

    document = Document.ON_KUBERNETES
    undescribed = "it is in a registry, of which vCenter knows nothing"
    checks: ClassVar = {"local.tools": builders("container_image")}
    step_types = (Build, Push, Commit, Forget)
    managed = False  # images stay in the registry

    def __init__(self, images: Images) -> None:
        self._images = images

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the notes on this machine, and the folders that the site wants."""
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        tool, why = (
            self._images.tool() if any(spec.build != "never" for spec in specs.values()) else (None, "")
        )
        sources = {
            name: absent(spec.source, spec.awaits["source"])
            or self._images.source(spec.source.path, spec.dockerfile)
            for name, spec in specs.items()
        }
        due = {
            name: f"{spec.image} {spec.content(files)}"
            for name, spec in specs.items()
            if isinstance(files := sources[name], str)
        }
        records, states = self._images.records(), {}
        for name in dict.fromkeys([*wanted, *(records if include_unlisted else ())]):
            found = self._images.look(records[name], frozenset()) if name in records else None
            if found is not None and found.mark is not None:
                states[name] = State(
                    mark=found.mark,
                    built=found.record.built,
                    pushed=found.record.pushed,
                    tool=tool.name if tool else "",
                    why=why,
                    due=due.get(name, ""),
                )
        return Observation(states, ContainerImageFacts(tool.name if tool else "", sources))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Builds and pushes if the last build was of other content, notes what was done; forgets."""
        if spec is None:
            return () if state is None else (Forget(name=name),)
        return _steps(name, spec, state, context)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Always ready; reports what a person has to do if no tool builds here."""
        if spec.build != "never" and state.tool:
            return Readiness(
                Ready.READY, note=f"{spec.image} is built" + (" and pushed" if spec.push else "")
            )
        return Readiness(
            Ready.READY,
            note=(
                f"{spec.image} is not built: {state.undone(spec.build)}; run: "
                f"{spec.recipe.by_hand(spec.image, push=spec.push)}"
            ),
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step."""
        match step:
            case Build(name=name, mark=mark):
                self._images.begin(self._images.record(name), mark)
                self._images.build(self._images.record(name), mark, step.image, step.content, step.recipe)
            case Push(name=name, mark=mark):
                self._images.push(self._images.record(name), mark, step.image, step.content)
            case Commit(name=name, mark=mark):
                self._images.begin(self._images.record(name), mark)
            case Forget(name=name):
                self._images.forget(self._images.record(name))
            case _:
                raise AssertionError(step)


def _steps(name: str, spec: Spec, state: State | None, context: PlanContext) -> Sequence[Step]:
    facts = context.facts or ContainerImageFacts()
    files = facts.sources.get(name, "")
    if isinstance(files, Absent):
        if state is not None and state.mark is not None and state.mark.applied == spec.applied():
            return ()  # images stay in the registry
        raise held(files, "source")
    if isinstance(files, Problem):
        raise Refusal(files.what, field="source", why=files.why, next=files.next)
    content, found = spec.content(files), list[Step]()
    made, before = f"{spec.image} {content}", state or State(mark=None)
    building = bool(facts.tool) and spec.build != "never"
    drift = (
        ()
        if state is None or not building or state.built == made
        else (Change("built", state.built or None, made),)
    )
    changes = compare.changes(spec, before.mark, drift)
    if building and before.built != made:
        found.append(
            Build(
                name=name,
                mark=context.mark,
                image=spec.image,
                source=spec.source.text,
                tool=facts.tool,
                recipe=spec.recipe,
                content=content,
                changes=changes,
            )
        )
    if building and spec.push and before.pushed != made:
        found.append(Push(name=name, mark=context.mark, image=spec.image, content=content))
    if found or before.mark is None or before.mark.applied != spec.applied():
        found.append(Commit(name=name, mark=context.mark.committed(spec.applied()), changes=changes))
    return found
