"""The kind nvidia_container_toolkit: observe, readiness, run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.kinds.linux import Answers, Commands
from bfinfra.kinds.machine.base import Adopt, LinuxSoftware, record_texts
from bfinfra.kinds.machine.nvidia_container_toolkit import decide
from bfinfra.kinds.machine.nvidia_container_toolkit.decide import Remove, RemoveRestart, Restart, SetUp
from bfinfra.kinds.machine.nvidia_container_toolkit.spec import Spec
from bfinfra.kinds.machine.nvidia_container_toolkit.state import NAME, Installed, State, look, read
from bfinfra.kinds.sent_files import digest, sent
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.kind import Report
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.sources import LocalFile
from bfinfra.model.step import Step

__all__ = ["NvidiaContainerToolkit", "Spec", "State"]
PROGRAM = str(Spec.model_fields["program"].default)


class NvidiaContainerToolkit(LinuxSoftware[Spec, State, Installed]):
    """NVIDIA's container toolkit on Linux machines: GPUs in containers."""

    document = Document.PVRDMA
    step_types = (SetUp, Restart, Adopt, Remove, RemoveRestart)
    name = role = NAME

    def commands(self, host: str, specs: Sequence[Spec]) -> Commands:
        """The commands that read its record, the program, and the container runtimes."""
        return look(next((spec.program for spec in reversed(specs) if host in spec.hosts), PROGRAM))

    def read(self, host: str, answers: Answers) -> Installed:
        """What a machine has, from its answers."""
        return read(answers)

    def packages(self, spec: Spec) -> Mapping[str, LocalFile]:
        """The packages, or the repository's file and key."""
        return spec.brought()

    def digest(self, spec: Spec) -> str:
        """The digest of what to install: the packages, or the repository's file and key and the names of its
        packages; "" if a file can't be read.
        """
        given = spec.repository
        files = (*spec.files(), *((given.key,) if given and given.key else ()))
        found = [digest(each.path) for each in files]
        if not all(found):
            return ""
        text = ",".join((*found, *((given.package, given.version or "") if given else ())))
        return hashlib.sha256(text.encode()).hexdigest()

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Installs it where something differs, on all such machines in parallel, and removes it from machines
        that left the site.
        """
        return decide.steps(spec, state, context)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the container runtime runs on each machine."""
        for host in spec.hosts:
            service = state.on[host].services.get(spec.runtime) if host in state.on else ""
            if service != "active":
                return (failed if service == "failed" else waiting)(
                    f"{spec.runtime} on {host} is {service or 'not installed'}"
                )
        return Readiness(Ready.READY, note=f"{spec.runtime} runs on {', '.join(spec.hosts)}")

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, as one play on all its machines."""
        match step:
            case SetUp():
                common = {**step.common, **_sent(step.common)}
                noted = decide.note_of(step.common["form"], step.common["files"])
                self._play(
                    step,
                    {
                        host: {**common, **todo, **record_texts(step.mark, *noted, todo["note"])}
                        for host, todo in step.todo.items()
                    },
                )
            case Remove():
                self._play(step, step.todo, "remove")
            case Adopt():
                self._play(step, step.records, "begin")
            case _:
                raise AssertionError(step)


def _sent(common: Mapping[str, Any]) -> dict[str, Any]:
    """The files to send: packages, or a repository and its key."""
    given = common["repository"]
    return {
        "packages": [sent(file) for file in common["packages"]],
        "repository": sent(given["src"], given["dest"]) if given else {},
        "key": sent(given["key"], given["key_path"]) if given and given["key"] else {},
    }
