"""What would stop an apply, looked for before anything else is tried: each check is a small function, all of
them only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from bfinfra.doctor import clusters, hosts, local, machines, servers, vcenter
from bfinfra.doctor.blocked import Blocked
from bfinfra.doctor.ground import CheckContext
from bfinfra.model.documentation import summary
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Finding, Health

Check = Callable[[CheckContext], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    local.references,
    local.files,
    local.packages,
    local.tools,
    local.state,
    servers.names,
    servers.connections,
    servers.certificates,
    vcenter.login,
    vcenter.version,
    vcenter.clock,
    vcenter.rights,
    vcenter.hosts,
    vcenter.space,
    vcenter.supervisors,
    hosts.clocks,
    hosts.alike,
    hosts.software,
    hosts.graphics,
    machines.entrance,
    machines.ports,
    clusters.certificates,
    clusters.entrance,
    clusters.versions,
    clusters.clocks,
    clusters.rights,
    clusters.tanzu,
)


def examine(ground: CheckContext) -> tuple[Finding, ...]:
    """Every check, side by side; findings in the checks' order."""
    with ThreadPoolExecutor(len(CHECKS), thread_name_prefix="doctor") as pool:
        return tuple(
            finding
            for found in pool.map(lambda check: list(_one(check, ground)), CHECKS)
            for finding in found
        )


def _one(check: Check, ground: CheckContext) -> Iterator[Finding]:
    name = f"{check.__module__.rpartition('.')[2]}.{check.__name__}"
    try:
        yield from (replace(finding, check=name) for finding in check(ground))
    except Blocked as blocked:
        yield Finding(
            blocked.about, Health.SKIPPED, (summary(check) or name).rstrip("."), blocked.why, check=name
        )
    except BfinfraError as error:
        for problem in error.problems:
            yield Finding(str(problem.where), Health.BAD, problem.what, problem.why, problem.next, check=name)
