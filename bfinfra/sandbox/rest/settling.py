"""Finishes what is being configured: it runs at last, or fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bfinfra.sandbox.faults import Interrupted

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import Info, RestState


@dataclass(frozen=True)
class Configuring:
    """How one type of record gets configured: where the records are, the operation that fault rules name, the
    id of a failure, fields of a running and of a broken record, and what runs once it is configured.
    """

    records: Callable[[RestState], dict[str, Info]]
    operation: str
    failure: str
    notify: Callable[[RestState, str], None]
    running: Mapping[str, str]
    broken: Mapping[str, str]


def configured(state: RestState, name: str, how: Configuring) -> None:
    """Finish the work on a record that is CONFIGURING, and call `how.notify` once it runs. Leaves any other
    record as it is.
    """
    with suppress(Interrupted), state.faults.during("rest", how.operation, name) as effect, state.lock:
        records = how.records(state)
        info = records.get(name)
        if info is None or info["config_status"] != "CONFIGURING":
            return
        details = {"id": how.failure, "default_message": effect.message, "args": []}
        failed = {
            "config_status": "ERROR",
            "messages": [{"severity": "ERROR", "details": details}],
            **how.broken,
        }
        records[name] = {
            **info,
            **(failed if effect.message else {"config_status": "RUNNING", **how.running}),
        }
    with state.lock:
        settled = how.records(state).get(name, {}).get("config_status") == "RUNNING"
    if settled:
        how.notify(state, name)
