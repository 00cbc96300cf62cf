"""FlexDirect on machines: observe, wait, act."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.linux import across, ask, digest, machines, standing
from bfinfra.kinds.machine.flexdirect_host import decide, health
from bfinfra.kinds.machine.flexdirect_host.decide import Anew, Remove, Restart, SetUp
from bfinfra.kinds.machine.flexdirect_host.spec import Spec, form
from bfinfra.kinds.machine.flexdirect_host.state import LOOK, FlexDirectHostFacts, Installed, State, read
from bfinfra.model import kind
from bfinfra.model import secret as secrets
from bfinfra.model.awaited import away
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.health import Status
from bfinfra.model.kind import Observation, Report
from bfinfra.model.readiness import READY, Readiness, Ready, failed, waiting
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.ssh import Play
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts

__all__ = ["FlexdirectHost", "Spec", "State"]


class FlexdirectHost(kind.Kind[Spec, State]):
    """FlexDirect on Linux machines: GPU servers and CPU hosts."""

    document = Document.FLEXDIRECT
    step_types = (SetUp, Restart, Remove, Anew)

    def __init__(self, hosts: LinuxHosts, site: Site) -> None:
        self._hosts, self._site = hosts, site

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """One command a machine: what is recorded, installed and running there."""
        there = machines(needs)
        asked = ask(self._hosts, there.values(), lambda _: LOOK)
        found = {host: read(answers) for host, answers in asked.answers.items()}
        states = {
            name: across(State, on, needs)
            for name, on in standing(
                "flexdirect_host", found, wanted, self._site.name, include_unlisted=include_unlisted
            ).items()
        }
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        facts = FlexDirectHostFacts(
            there,
            {name: digest(spec.package.path) for name, spec in specs.items()},
            {name: self._licensed(spec, found) for name, spec in specs.items()},
            {
                key.name: need.state.os
                for key, need in needs.items()
                if key.name in there and key.kind == "linux_host"
            },
            {name: gone for name, spec in specs.items() if (gone := away(spec, {"package": spec.package}))},
            {name: gone for name, spec in specs.items() if (gone := away(spec, {"license": spec.license}))},
        )
        return Observation(states, facts, asked.blind({name: spec.hosts for name, spec in specs.items()}))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Set up where something differs, on all such machines side by side; take off where it shall
        not be.
        """
        return decide.steps(spec, state, context)

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """What `flexdirect health` says on each machine is good enough."""
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
        """One play on all machines of the step."""
        match step:
            case SetUp():
                self._set_up(step)
            case Remove(machines=there, packages=packages):
                each = {
                    machine: {
                        "package_name": packages[host],
                        "package_form": form(packages[host]),
                        "uninstall": list(step.uninstall[host]),
                    }
                    for host, machine in there.items()
                }
                self._hosts.play(Play("flexdirect", each, tasks="remove")).check()
            case _:
                raise AssertionError(step)

    def _set_up(self, step: SetUp) -> None:
        package = step.package.rpartition("/")[2]
        noted = f"\npackage={package}" + (
            f"\nuninstall={json.dumps(step.uninstall)}" if step.uninstall else ""
        )
        rest = noted + (
            f"\nlicense={secrets.digest(step.license.reveal(), pepper=self._pepper())}"
            if step.license
            else ""
        )
        common: dict[str, Any] = {
            "package": step.package,
            "package_sha256": step.package_sha256,
            "license_by": step.license_by,
            "unit": step.unit,
            "mark_open": step.mark.open.encode() + noted,
            "mark_sealed": step.mark.encode() + rest,
        }
        each = {machine: {**common, **step.todo[host]} for host, machine in step.machines.items()}
        self._hosts.play(
            Play("flexdirect", each, secrets={"license": step.license} if step.license else {})
        ).check()

    def _licensed(self, spec: Spec, found: Mapping[str, Installed]) -> frozenset[str]:
        """Machines that were given the license as it is now."""
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
        return self._site.pepper.reveal() if self._site.pepper else ""
