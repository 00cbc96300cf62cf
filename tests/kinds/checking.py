"""What checks of the doctor are tried on: a kind's example on the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinds.lifecycle import EXAMPLES

import bfinfra
from bfinfra.app.diagnose import check_context
from bfinfra.kinds.checks import CheckContext
from bfinfra.model.finding import Finding, Health
from bfinfra.sandbox import Running

BAD, GOOD, SKIPPED, WARNING = Health.BAD, Health.GOOD, Health.SKIPPED, Health.WARNING


@contextmanager
def checks_on(sandbox: Running, kind: str, **changes: Any) -> Iterator[CheckContext]:
    """What the checks of a kind's example are given, with changes."""
    site = bfinfra.load(EXAMPLES[kind], sandbox=sandbox)
    with check_context(site, bfinfra.RunContext(sandbox=sandbox)) as context:
        yield replace(context, **changes)


def one(findings: Iterable[Finding]) -> tuple[Health, str]:
    """The only finding: its status, and its whole text."""
    (found,) = findings
    return found.health, f"{found.about}: {found.what}: {found.why} → {found.next}"


def diagnosed(path: Path, sandbox: Running) -> tuple[Finding, ...]:
    """What the doctor finds in a site."""
    return bfinfra.diagnose(bfinfra.load(path, sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox))


def messages(found: Iterable[Finding], health: Health) -> dict[str, str]:
    """Check → what it says of this health, with what to do."""
    return {
        each.check: f"{each.about}: {each.what}: {each.why} → {each.next}"
        for each in found
        if each.health is health
    }
