"""The kind client_image: reads folders on this machine, writes them, and builds from them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bfinfra.backends.images import Images, Recipe
from bfinfra.kinds.client_files import ClientFiles, read_files, token_files
from bfinfra.kinds.image.base import builders
from bfinfra.kinds.image.client_image import decide
from bfinfra.kinds.image.client_image.dockerfile import FILES, IGNORE, TOKEN
from bfinfra.kinds.image.client_image.spec import Spec
from bfinfra.kinds.image.client_image.state import ClientImageFacts, State
from bfinfra.kinds.image.client_image.steps import Build, Commit, Delete, Push, Render
from bfinfra.kinds.linux import Asked, ask, machines
from bfinfra.model import kind
from bfinfra.model.awaited import Absent, absent
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Problem, RemoteError
from bfinfra.model.kind import Observation, Report
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.refs import Key
from bfinfra.model.ssh import LinuxMachine
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts

PRIVATE = {f"{FILES}/client.yaml": 0o600}


class ClientImage(kind.Kind[Spec, State]):
    """A container image with the Bitfusion client in it."""

    document = Document.SINGAPORE_POC
    undescribed = "it is a folder on your machine"
    checks: ClassVar = {"local.tools": builders("client_image")}
    step_types = (Render, Build, Push, Commit, Delete)

    def __init__(self, images: Images, hosts: LinuxHosts | None) -> None:
        self._images, self._hosts = images, hosts

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the folders that the site wants, and those that it wrote on this machine."""
        known = {Key.parse(address).name: path for address, path in self._images.known().items()}
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        tool, why = (
            self._images.tool() if any(spec.build != "never" for spec in specs.values()) else (None, "")
        )
        read: dict[str, dict[str, str]] = {}
        problems: dict[str, str | Absent] = {}
        there = machines(needs)
        givers = {name: spec.client_files for name, spec in specs.items() if spec.client_files}
        asked = self._ask(there, tuple(givers.values()))
        for name, spec in specs.items():
            away = absent(spec.package, spec.awaits["package"])
            digest, problem = ("", away) if away else self._images.package(spec.package.path)
            given = (
                spec.client_files.digests(asked.answers.get(spec.client_files.host, {}))
                if spec.client_files
                else {}
            )
            baked = {f"{FILES}/{file}": value for file, value in given.items()} or _token_digests(spec, needs)
            read[name] = ({f"{FILES}/{spec.package_name}": digest} if digest else {}) | baked
            if problem:
                problems[name] = problem
        states = {}
        for name in dict.fromkeys([*wanted, *(known if include_unlisted else ())]):
            if state := self._look(name, wanted.get(name), known.get(name), tool.name if tool else "", why):
                states[name] = state
        facts = ClientImageFacts(
            tool.name if tool else "", why, read, problems, {host: there[host] for host in asked.answers}
        )
        return Observation(
            states,
            facts,
            {
                name: f"{each.host}: {asked.unreadable[each.host]}"
                for name, each in givers.items()
                if each.host in asked.unreadable
            },
        )

    def _ask(self, there: Mapping[str, LinuxMachine], givers: Sequence[ClientFiles]) -> Asked:
        """The answers of the machines that have the files. A machine that doesn't answer makes only its own
        images unreadable.
        """
        named = {there[each.host] for each in givers if each.host in there}
        if self._hosts is None:
            return Asked({}, {})
        try:
            return ask(self._hosts, named, lambda machine: _commands(machine.name, givers))
        except RemoteError as error:
            return Asked({}, {machine.name: str(error) for machine in named})

    def _look(self, name: str, spec: Spec | None, known: Path | None, tool: str, why: str) -> State | None:
        """The state of the folder that was written earlier if it still has this site's mark, else of the
        wanted one.
        """
        for path in dict.fromkeys(
            path for path in (known, spec.context.path if spec else None) if path is not None
        ):
            found = self._images.look(
                path, decide.names(spec) if spec and path == spec.context.path else frozenset()
            )
            if found is not None and (
                path != known or (found.mark and found.mark.address == f"client_image/{name}")
            ):
                return State(
                    mark=found.mark,
                    context=str(path),
                    files=found.files,
                    built=found.record.built,
                    pushed=found.record.pushed,
                    tool=tool,
                    why=why,
                )
        return None

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Writes the context, builds, pushes, notes what was done; deletes."""
        return decide.steps(name, spec, state, context)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Always ready; reports what a person has to do if no tool builds here."""
        if spec.build != "never" and state.tool:
            return Readiness(
                Ready.READY,
                note=f"{spec.image} is built" + (" and pushed" if decide.done(spec, state.pushed) else ""),
            )
        by_hand = Recipe(Path(state.context)).by_hand(spec.image, push=spec.push)
        return Readiness(
            Ready.READY,
            note=(
                f"{state.context} is written, but the image is not built: {state.undone(spec.build)}; run: "
                f"{by_hand}"
            ),
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step."""
        match step:
            case Render():
                self._render(step)
            case Build():
                self._images.build(Path(step.context), step.mark, step.image, str(step.content))
            case Push():
                self._images.push(Path(step.context), step.mark, step.image, str(step.content))
            case Commit():
                self._images.commit(Path(step.context), step.mark)
            case Delete():
                self._images.remove(Path(step.context), step.address)
            case _:
                raise AssertionError(step)

    def _render(self, step: Render) -> None:
        package = Path(step.package)
        wanted: dict[str, bytes | Path] = {
            "Dockerfile": step.dockerfile.encode(),
            ".dockerignore": IGNORE.encode(),
            f"{FILES}/{package.name}": package,
        }
        if step.giver or step.token:
            texts = (
                read_files(self._hosts, step.giver, step.given)
                if step.giver and self._hosts
                else token_files(str(step.token))
            )
            wanted |= {f"{FILES}/{name}": text.encode() for name, text in texts.items()}
        for name, content in wanted.items():
            digest = (
                self._images.package(content)[0]
                if isinstance(content, Path)
                else hashlib.sha256(content).hexdigest()
            )
            if digest != step.files[name]:
                raise BfinfraError(
                    Problem(f"{name} changed while bfinfra worked with it", step.context, next="plan again")
                )
        self._images.render(Path(step.context), step.mark, wanted, PRIVATE)


def _commands(host: str, givers: Iterable[ClientFiles]) -> dict[str, Sequence[str]]:
    """The commands for a machine, for all images that take its files."""
    return {
        title: command for each in givers if each.host == host for title, command in each.commands.items()
    }


def _token_digests(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> dict[str, str]:
    """SHA-256 of a token's files, if they are baked in and can be read. The bitfusion_token itself reports
    what is wrong with it.
    """
    need = needs.get(Key("bitfusion_token", spec.token or ""))
    if not spec.baked or need is None or need.state is None:
        return {}
    return {
        f"{FILES}/{name}": hashlib.sha256(text.encode()).hexdigest()
        for name, text in token_files(need.state.path).items()
        if name in TOKEN
    }
