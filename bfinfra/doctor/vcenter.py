"""Checks of vCenter: account, version, clock, rights."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bfinfra.kinds.checks import CheckContext
from bfinfra.kinds.server_checks import server_checks, skew
from bfinfra.model.finding import Finding, bad, good, warning
from bfinfra.model.rights import READ
from bfinfra.model.trust import Server, host_and_port

TESTED = ((7, 0), (9, 1))


def servers(context: CheckContext) -> Iterator[Server]:
    """The site's vCenter, if it names one."""
    if context.vcenter is not None:
        vcenter = context.vcenter
        yield Server("vcenter", *host_and_port(vcenter.server), vcenter.settings.trust)


def login(context: CheckContext) -> Iterator[Finding]:
    """The account can log in to vCenter."""
    if context.vcenter is None:
        return
    if context.login is not None:
        raise context.login
    yield good(f"vcenter {context.vcenter.server}", "the account can log in")


def version(context: CheckContext) -> Iterator[Finding]:
    """The version of vCenter is one that bfinfra knows."""
    if context.vcenter is None:
        return
    name, api = context.entered().about()
    number = tuple(int(part) for part in re.findall(r"\d+", api)[:2])
    about = f"vcenter {context.vcenter.server}"
    if number > TESTED[1]:
        yield warning(
            about,
            f"{name}, API {api}, is newer than bfinfra knows",
            "bfinfra was not tested with it",
            "upgrade bfinfra, or read its changelog",
        )
    else:
        yield good(about, f"{name}, API {api}")


def clock(context: CheckContext) -> Iterator[Finding]:
    """The clock of vCenter agrees with this machine's."""
    if context.vcenter is None:
        return
    server, before = context.entered(), context.now()
    theirs, after = server.now(), context.now()
    off = (theirs - (before + (after - before) / 2)).total_seconds()
    yield skew(f"vcenter {server.server}", off)


def rights(context: CheckContext) -> Iterator[Finding]:
    """The account has the privileges that the site needs on vCenter's objects."""
    if context.vcenter is None or not context.rights.entities:
        return
    seen = {entity: {*READ, *names} for entity, names in context.rights.entities.items()}
    lacking = context.entered().grants.lacking({entity: sorted(names) for entity, names in seen.items()})
    for path, names in lacking.items():
        if names:
            yield bad(
                f"vcenter {path}",
                f"the account lacks {', '.join(names)}",
                next="an administrator grants them with the commands of: bfinfra privileges SITE --as govc",
            )
        else:
            yield bad(
                f"vcenter {path}",
                "there is nothing at this path that the account sees",
                "the site names it; an account sees only what it has System.View on",
                "correct the name in the site, create it first, or have System.View and System.Read granted",
            )
    if not lacking:
        yield good(
            f"vcenter {context.vcenter.server}",
            f"the account has all {sum(map(len, context.rights.entities.values()))} privileges",
        )


CHECKS = {
    **server_checks(servers),
    "vcenter.login": login,
    "vcenter.version": version,
    "vcenter.clock": clock,
    "vcenter.rights": rights,
}
