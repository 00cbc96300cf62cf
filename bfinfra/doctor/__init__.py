"""Checks for what would stop an apply: this machine, the site's servers, and what each of its kinds needs.
Only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from bfinfra.doctor import local, vcenter
from bfinfra.kinds import kind, names
from bfinfra.kinds.checks import CheckContext
from bfinfra.model.documentation import summary
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Blocked, Finding, Health

Check = Callable[[CheckContext], Iterable[Finding]]
ORDER = ("local", "servers", "vcenter", "hosts", "machines", "clusters")
"""The sections of the findings, by the first word of their checks' names, in the order in which they are
printed.
"""


def examine(context: CheckContext) -> tuple[Finding, ...]:
    """The findings of all checks, which run in parallel. They are in the order of the checks' names, each
    once.
    """
    checks = _checks(context)
    with ThreadPoolExecutor(len(checks), thread_name_prefix="doctor") as pool:
        found = list(pool.map(lambda named: list(_one(named[0], named[1], context)), checks))
    return tuple(dict.fromkeys(finding for findings in found for finding in findings))


def _checks(context: CheckContext) -> list[tuple[str, Check]]:
    """The checks of this machine and of vCenter, then those of the site's kinds. Checks of the same name are
    together.
    """
    used = {key.kind for key in context.site.resources}
    tables: tuple[Mapping[str, Check], ...] = (
        local.CHECKS,
        vcenter.CHECKS,
        *(kind(name).checks for name in names() if name in used),
    )
    found = [each for table in tables for each in table.items()]
    first = {name: place for place, (name, _) in reversed(list(enumerate(found)))}
    return sorted(found, key=lambda each: (_section(each[0]), first[each[0]]))


def _section(name: str) -> int:
    about = name.partition(".")[0]
    return ORDER.index(about) if about in ORDER else len(ORDER)


def _one(name: str, check: Check, context: CheckContext) -> Iterator[Finding]:
    try:
        yield from (replace(finding, check=name) for finding in check(context))
    except Blocked as blocked:
        yield Finding(
            blocked.about, Health.SKIPPED, (summary(check) or name).rstrip("."), blocked.why, check=name
        )
    except BfinfraError as error:
        for problem in error.problems:
            about = str(problem.where) or context.site.name
            yield Finding(about, Health.BAD, problem.what, problem.why, problem.next, check=name)
