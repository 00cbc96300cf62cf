"""Reads the health of machines with FlexDirect, and compares it with what the site accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.backends.flexdirect.report import parse
from bfinfra.model.errors import BfinfraError
from bfinfra.model.health import HealthReport, Status
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.ssh import LinuxMachine

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts

COMMAND = {"health": ("flexdirect", "health")}
TIMEOUT = 120  # seconds
LIMITS = {"pass": Status.PASS, "marginal": Status.MARGINAL, "any": Status.UNCLEAR}


@dataclass(frozen=True)
class Examined:
    """A machine of a flexdirect_host. `limit`: the worst status that its site accepts; `problem`: why it
    can't be read.
    """

    key: Key
    machine: str
    health: HealthReport
    limit: Status
    problem: str = ""

    @property
    def good(self) -> bool:
        """True if it answered, with a status that the site accepts."""
        return not self.problem and not worse(self.health.worst, self.limit)

    @property
    def why(self) -> str:
        """The checks with a worse status; the first few."""
        bad = [
            f"{check.status} {check.text}"
            for each in self.health.reports
            for check in each.checks
            if worse(check.status, self.limit)
        ]
        unclear = [objection for each in self.health.reports for objection in each.objections]
        return self.problem or "; ".join([*bad, *unclear][:4]) or "its output is not a health report"


def worse(status: Status, limit: Status) -> bool:
    """Return whether a status is worse than what is accepted."""
    return list(Status).index(status) > list(Status).index(limit)


def ask(wanted: Mapping[LinuxMachine, tuple[Key, str]], hosts: LinuxHosts) -> list[Examined]:
    """The health of each machine, read in parallel. `wanted`: by machine, its resource and what
    that accepts.
    """
    answers, found = hosts.read(dict.fromkeys(wanted, COMMAND), TIMEOUT), []
    for machine, (key, accepted) in wanted.items():
        answer = answers[machine]
        if isinstance(answer, BfinfraError):
            found.append(Examined(key, machine.name, HealthReport(()), LIMITS[accepted], str(answer)))
        else:
            found.append(Examined(key, machine.name, parse(answer["health"].text), LIMITS[accepted]))
    return found


def examine(resources: Mapping[Key, Any], hosts: LinuxHosts) -> list[Examined]:
    """The health of every machine that a site's flexdirect_hosts name."""
    wanted = {}
    for key, spec in resources.items():
        for host in spec.hosts if key.kind == "flexdirect_host" else ():
            wanted[resources[Key("linux_host", host)].machine(host)] = key, spec.health
    return ask(wanted, hosts)
