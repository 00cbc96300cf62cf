"""The kind flexdirect_host: observe, readiness, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.linux import Answers, Commands
from bfinfra.kinds.machine.base import Adopt, LinuxSoftware, Reading, record_texts
from bfinfra.kinds.machine.flexdirect_host import decide, health
from bfinfra.kinds.machine.flexdirect_host.decide import Anew, Remove, Restart, SetUp
from bfinfra.kinds.machine.flexdirect_host.spec import Spec, form
from bfinfra.kinds.machine.flexdirect_host.state import (
    LOOK,
    NAME,
    FlexDirectHostFacts,
    Installed,
    State,
    read,
)
from bfinfra.kinds.sent_files import CACHE, sent
from bfinfra.model import secret as secrets
from bfinfra.model.awaited import away
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.health import Status
from bfinfra.model.kind import Report
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts

LONGEST = 100_000  # bytes of an argument; Linux takes some 128 KiB
__all__ = ["FlexdirectHost", "Spec", "State"]


class FlexdirectHost(LinuxSoftware[Spec, State, Installed]):
    """FlexDirect on Linux machines: GPU servers and CPU hosts."""

    document = Document.FLEXDIRECT
    step_types = (SetUp, Restart, Adopt, Remove, Anew)
    name, role = NAME, "flexdirect"

    def __init__(self, hosts: LinuxHosts, site: Site) -> None:
        super().__init__(hosts, site)
        self._secret = site.pepper

    def commands(self, host: str, specs: Sequence[Spec]) -> Commands:
        """Reads its record, the program, the license and the scheduler."""
        return LOOK

    def read(self, host: str, answers: Answers) -> Installed:
        """From the machine's answers."""
        return read(answers)

    def packages(self, spec: Spec) -> Mapping[str, LocalFile]:
        """The package to install."""
        return {"package": spec.package}

    def facts(self, specs: Mapping[str, Spec], reading: Reading[Installed]) -> FlexDirectHostFacts:
        """Adds licenses and operating systems."""
        known = super().facts(specs, reading)
        return FlexDirectHostFacts(
            known.machines,
            known.found,
            known.packages,
            known.away,
            licensed={name: self._licensed(spec, reading.found) for name, spec in specs.items()},
            os={
                key.name: need.state.os
                for key, need in reading.needs.items()
                if key.name in reading.machines and key.kind == "linux_host"
            },
            unlicensed={
                name: gone for name, spec in specs.items() if (gone := away(spec, {"license": spec.license}))
            },
        )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Installs where something differs, on all such machines in parallel; removes where it is no longer
        wanted.
        """
        return decide.steps(spec, state, context)

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready when the site accepts what `flexdirect health` reports on each machine."""
        if spec is None or spec.health == "any":
            return READY
        here = {
            machine: (Key("flexdirect_host", ""), spec.health)
            for host, machine in state.machines.items()
            if host in spec.hosts
        }
        found = health.ask(here, self._hosts)
        for each in found:
            if not each.good:
                unclear = each.problem or each.health.worst is Status.UNCLEAR
                return (waiting if unclear else failed)(f"flexdirect health on {each.machine}: {each.why}")
        return Readiness(
            Ready.READY, note="health: " + ", ".join(f"{each.machine} {each.health.worst}" for each in found)
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, as one play on all its machines."""
        match step:
            case SetUp():
                self._set_up(step)
            case Remove():
                each = {
                    host: {
                        "form": form(file),
                        "files": [f"{CACHE}/{file}"] if file else [],
                        "uninstall": list(step.uninstall[host]),
                    }
                    for host, file in step.packages.items()
                }
                self._play(step, each, "remove")
            case Adopt():
                self._play(step, step.records, "begin")
            case _:
                raise AssertionError(step)

    def _set_up(self, step: SetUp) -> None:
        _check_argument(step)
        given = (
            (f"license={secrets.digest(step.license.reveal(), pepper=self._pepper())}",)
            if step.license
            else ()
        )
        common: dict[str, Any] = {
            "package": sent(step.package),
            "package_sha256": step.package_sha256,
            "license_by": step.license_by,
            "unit": step.unit,
            **record_texts(step.mark, *decide.note(step.package, step.uninstall), after=given),
        }
        each = {host: {**common, **todo} for host, todo in step.todo.items()}
        self._play(step, each, secrets={"license": step.license} if step.license else {})

    def _licensed(self, spec: Spec, found: Mapping[str, Installed]) -> frozenset[str]:
        """Machines that were given the present license."""
        if spec.license is None:
            return frozenset()
        if away(spec, {"license": spec.license}):
            return frozenset(
                host for host in spec.hosts if host in found and found[host].licensed and found[host].license
            )
        value = spec.license.reveal()
        return frozenset(
            host
            for host in spec.hosts
            if host in found
            and found[host].licensed
            and secrets.matches(value, found[host].license, self._pepper())
        )

    def _pepper(self) -> str:
        return self._secret.reveal() if self._secret else ""


def _check_argument(step: SetUp) -> None:
    """Raises BfinfraError for a license that is too long for a command line."""
    if step.license and step.license_by == "argument" and len(step.license.reveal().encode()) > LONGEST:
        raise BfinfraError(
            Problem(
                f"the license {step.license} can't be given to flexdirect init",
                why=f"it has more than {LONGEST} bytes, and no command takes such an argument",
                next="write license_by: stdin, or correct what the reference leads to",
            )
        )
