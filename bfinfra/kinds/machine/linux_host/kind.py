"""An existing Linux machine, by SSH: a place for clients and servers of remote GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.kinds.machine.linux_host.checks import CHECKS
from bfinfra.kinds.machine.linux_host.spec import Spec
from bfinfra.model import kind, resource
from bfinfra.model.awaited import Away, away, held
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, RemoteError, Unreachable
from bfinfra.model.kind import Observation
from bfinfra.model.readiness import Readiness, Ready, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.ssh import LinuxMachine
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import Answer, LinuxHosts

LOOK = {"release": ("cat", "/etc/os-release"), "architecture": ("uname", "-m"), "kernel": ("uname", "-r")}


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A machine that answered. `os`: id and version of its distribution, such as `ubuntu 20.04`."""

    machine: LinuxMachine
    os: str = ""
    architecture: str = ""
    kernel: str = ""
    vm: str = ""
    silent: str = ""
    """Why a virtual machine that has just started doesn't answer yet."""


class LinuxHost(kind.Source[Spec, State]):
    """An existing Linux machine, by SSH."""

    document = Document.FLEXDIRECT
    undescribed = "it is on a Linux machine, and vCenter doesn't tell how to log in there by SSH"
    reaches = True
    checks = CHECKS

    def __init__(self, hosts: LinuxHosts, site: Site) -> None:
        self._hosts, self._site = hosts, site
        # On destroy nothing is wanted, but the machines in the file are still needed to remove what is on
        # them.
        self._named = {key.name: spec for key, spec in site.resources.items() if key.kind == "linux_host"}

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Runs one command on each machine. A machine that doesn't answer is unreadable, and so is everything
        on it.
        """
        specs = {
            name: spec
            for name, spec in ({**self._named, **wanted} if include_unlisted else wanted).items()
            if spec is not None and _runs(spec, needs)
        }
        closed = {name: gone for name, spec in wanted.items() if spec is not None and (gone := _away(spec))}
        asked = {self._machine(name, spec): LOOK for name, spec in specs.items() if name not in closed}
        states, unreadable = {}, {}
        for machine, found in self._hosts.read(asked).items():
            vm = specs[machine.name].vm or ""
            if isinstance(found, Unreachable) and vm and not include_unlisted:
                states[machine.name] = State(
                    machine=machine, vm=vm, silent=str(found.problems[0])
                )  # it runs, and its SSH server is starting
            elif isinstance(found, RemoteError) and len(asked) == 1:
                raise found  # the caller retries
            elif isinstance(found, BfinfraError):
                unreadable[machine.name] = str(found)
            else:
                states[machine.name] = _state(machine, found, vm)
        return Observation(states, closed, unreadable)

    def _machine(self, name: str, spec: Spec) -> LinuxMachine:
        place = self._site.place(Key("linux_host", name), "trust")
        return replace(spec.machine(name), trusted_at=str(place or ""))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """No steps. Raises Awaited for a key or password that doesn't exist yet."""
        if spec is not None and (closed := (context.facts or {}).get(name)):
            field, problem = closed
            raise held(problem, field)
        return ()

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready, as it answered."""
        return (
            waiting(state.silent)
            if state.silent
            else Readiness(Ready.READY, note=f"{state.os}, {state.architecture}")
        )


def _away(spec: Spec) -> Away | None:
    """The key or password of the machine that doesn't exist yet: no connection is opened before it does."""
    opens = {"trust.known_hosts": spec.trust.known_hosts, "key": spec.key, "password": spec.password}
    return away(spec, {**opens, "sudo_password": spec.sudo_password})


def _runs(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> bool:
    """Return whether it can be read: a virtual machine of this site that doesn't exist yet, or is
    off, can't.
    """
    if spec.vm is None:
        return True
    need = needs.get(Key("virtual_machine", spec.vm))
    return need is not None and need.state is not None and need.state.machine.on


def _state(machine: LinuxMachine, found: Mapping[str, Answer], vm: str) -> State:
    lines = (line.partition("=") for line in found["release"].text.splitlines() if "=" in line)
    release = {name: value.strip().strip("\"'") for name, _, value in lines}
    os = " ".join(filter(None, (release.get("ID", "unknown"), release.get("VERSION_ID", ""))))
    return State(
        machine=machine,
        os=os,
        architecture=found["architecture"].text.strip(),
        kernel=found["kernel"].text.strip(),
        vm=vm,
    )
