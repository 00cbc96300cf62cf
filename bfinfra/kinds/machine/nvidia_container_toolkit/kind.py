"""NVIDIA's container toolkit on machines: observe, wait, act."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.kinds.linux import across, ask, digest, machines, standing
from bfinfra.kinds.machine.nvidia_container_toolkit import decide
from bfinfra.kinds.machine.nvidia_container_toolkit.decide import Remove, RemoveRestart, Restart, SetUp
from bfinfra.kinds.machine.nvidia_container_toolkit.spec import Spec
from bfinfra.kinds.machine.nvidia_container_toolkit.state import State, ToolkitFacts, look, read
from bfinfra.model import kind
from bfinfra.model.awaited import away
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.kind import Observation, Report
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.ssh import LinuxMachine, Play
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts

__all__ = ["NvidiaContainerToolkit", "Spec", "State"]
PROGRAM = str(Spec.model_fields["program"].default)


class NvidiaContainerToolkit(kind.Kind[Spec, State]):
    """NVIDIA's container toolkit on Linux machines: GPUs in containers."""

    document = Document.PVRDMA
    step_types = (SetUp, Restart, Remove, RemoveRestart)

    def __init__(self, hosts: LinuxHosts, site: Site) -> None:
        self._hosts, self._site = hosts, site.name

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """One command a machine."""
        there, specs = machines(needs), {name: spec for name, spec in wanted.items() if spec is not None}
        programs = {host: spec.program for spec in specs.values() for host in spec.hosts}
        asked = ask(self._hosts, there.values(), lambda machine: look(programs.get(machine.name, PROGRAM)))
        found = {host: read(answers) for host, answers in asked.answers.items()}
        states = {
            name: across(State, on, needs)
            for name, on in standing(
                "nvidia_container_toolkit", found, wanted, self._site, include_unlisted=include_unlisted
            ).items()
        }
        gone = {name: absent for name, spec in specs.items() if (absent := away(spec, spec.brought()))}
        facts = ToolkitFacts(there, found, {name: _digest(spec) for name, spec in specs.items()}, gone)
        return Observation(states, facts, asked.blind({name: spec.hosts for name, spec in specs.items()}))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Set up where something differs, on all such machines side by side; take off where it shall
        not be.
        """
        return decide.steps(spec, state, context)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """The container runtime runs again on each."""
        for host in spec.hosts:
            service = state.on[host].services.get(spec.runtime) if host in state.on else ""
            if service != "active":
                return (failed if service == "failed" else waiting)(
                    f"{spec.runtime} on {host} is {service or 'not there'}"
                )
        return Readiness(Ready.READY, note=f"{spec.runtime} runs on {', '.join(spec.hosts)}")

    def run(self, step: Step, report: Report) -> None:
        """One play on all machines of the step."""
        match step:
            case SetUp():
                each: dict[LinuxMachine, dict[str, object]] = {}
                for host, machine in step.machines.items():
                    todo = step.todo[host]
                    rest = (
                        f"\nform={step.common['form']}\nfiles={','.join(step.common['files'])}"
                        f"\n{todo['note']}"
                    )
                    each[machine] = {
                        **step.common,
                        **todo,
                        "mark_open": step.mark.open.encode() + rest,
                        "mark_sealed": step.mark.encode() + rest,
                    }
                self._hosts.play(Play("nvidia_container_toolkit", each)).check()
            case Remove():
                self._hosts.play(
                    Play(
                        "nvidia_container_toolkit",
                        {machine: step.todo[host] for host, machine in step.machines.items()},
                        tasks="remove",
                    )
                ).check()
            case _:
                raise AssertionError(step)


def _digest(spec: Spec) -> str:
    """Of what is to be installed: the packages, or the repository's file, its key, and what is wanted from
    it; "" where one can't be read.
    """
    given = spec.repository
    found = [digest(each.path) for each in (*spec.files(), *((given.key,) if given and given.key else ()))]
    if not all(found):
        return ""
    text = ",".join((*found, *((given.package, given.version or "") if given else ())))
    return hashlib.sha256(text.encode()).hexdigest()
