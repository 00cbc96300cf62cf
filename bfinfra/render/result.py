"""Any result as data: what `--output json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bfinfra.model.drift import Report
from bfinfra.model.errors import BfinfraError
from bfinfra.model.events import Event
from bfinfra.model.finding import Finding
from bfinfra.model.plan import Plan
from bfinfra.model.redact import clean
from bfinfra.render import data, drift, findings


def as_data(
    found: Plan | Report | BfinfraError | data.Outcome | Sequence[Finding],
    events: Sequence[Event] = (),
    *,
    site: str = "",
) -> dict[str, Any]:
    """A plan, an outcome, a drift report, an error or the doctor's findings on a `site` as JSON data, as the
    command line prints it: plain values without secrets, with `format_version` and `type`.

    With the `events` of its run, an outcome includes the steps that ran.
    """
    cleaned: dict[str, Any] = clean(
        findings.data(site, found) if isinstance(found, Sequence) else _whole(found, events)
    )
    return cleaned


def _whole(found: Plan | Report | BfinfraError | data.Outcome, events: Sequence[Event]) -> dict[str, Any]:
    match found:
        case Plan():
            return data.plan(found)
        case Report():
            return drift.data(found)
        case BfinfraError():
            return data.error(found)
        case _:
            return data.outcome(found, events)
