"""Checks of this machine: references, files, and space for the journal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from bfinfra.backends import tls
from bfinfra.kinds.checks import CheckContext
from bfinfra.model.finding import Finding, bad, good, warning
from bfinfra.model.units import bytes_short
from bfinfra.spec.load import awaited_files, missing_references

LEAST = 100 << 20  # bytes that journals may take in a long run


def references(context: CheckContext) -> Iterator[Finding]:
    """Every reference of the site leads somewhere: environment variables, files, keyrings."""
    found = missing_references(context.site)
    for problem in found:
        yield bad(str(problem.where) or context.site.name, problem.what, problem.why, problem.next)
    awaited = awaited_files(context.site)
    for problem in awaited:
        yield warning(str(problem.where), problem.what, problem.why, problem.next)
    if not found and not awaited:
        yield good(context.site.name, "every reference of the site leads somewhere")


def files(context: CheckContext) -> Iterator[Finding]:
    """The certificate authorities that the site names can be read."""
    trusts = [
        each
        for each in (
            context.site.vcenter and context.site.vcenter.trust,
            context.site.vcenter and context.site.vcenter.supervisor_trust,
        )
        if each and each.ca_file
    ]
    for trust in trusts:
        assert trust.ca_file is not None
        tls.context(trust)  # raises Untrusted if the file can't be used
        yield good(trust.ca_file.text, "contains certificate authorities")


def state(context: CheckContext) -> Iterator[Finding]:
    """The journal has space, and can be written."""
    there = next(each for each in (context.state, *context.state.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if not os.access(there, os.W_OK):
        yield bad(
            context.state,
            "it can't be written",
            next="give yourself permission, or set BFINFRA_STATE_HOME to another folder",
        )
    elif free < LEAST:
        yield bad(
            context.state,
            f"{bytes_short(free)} are free for the journal",
            next="free some, or set BFINFRA_STATE_HOME to another folder",
        )
    else:
        yield good(context.state, f"{bytes_short(free)} are free for the journal")


def sight(context: CheckContext) -> Iterator[Finding]:
    """What existed at the last look from this machine is found."""
    for key, problem in context.lost().items():
        yield warning(key, problem.what.removeprefix(f"{key}: "), problem.why, problem.next)


CHECKS = {"local.references": references, "local.files": files, "local.state": state, "servers.sight": sight}
