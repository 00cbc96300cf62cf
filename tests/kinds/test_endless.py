"""A step that waits for something which never ends: the run ends at the deadline, or at the wait's own limit, says
what it waited for, what is off or in maintenance mode, and what next.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from amid import Amid
from kinds.lifecycle import EVERYTHING, EXAMPLES, QUICK, endings
from kinds.test_out_of_service import changed

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.model import waits
from bfinfra.model.outcome import Outcome
from bfinfra.render import summary

DEADLINE, DAY = 3600.0, 24 * 3600.0
ENDLESS: dict[str, tuple[str, str, str, str]] = {
    "a guest that does not shut down": ("virtual_machine", "ShutdownGuest", "the shutdown is not over", ""),
    "a reconfiguration": (
        "virtual_machine",
        "ReconfigVM_Task",
        "the reconfiguration is not over",
        "virtual_machine/sckubw01 is off; left to do: reconfigure VM sckubw01",
    ),
    "a clone": ("virtual_machine", "CloneVM_Task", "cloning sckubw01 is not over", ""),
    "entering maintenance mode": (
        "gpu_host",
        "EnterMaintenanceMode_Task",
        "entering maintenance mode is not over",
        "",
    ),
    "a reboot": (
        "gpu_host",
        "RebootHost_Task",
        "the reboot is not over",
        "gpu_host/esx1.small.test is in maintenance mode; left to do: ",
    ),
    "leaving maintenance mode": (
        "gpu_host",
        "ExitMaintenanceMode_Task",
        "leaving maintenance mode is not over",
        "gpu_host/esx1.small.test is in maintenance mode; left to do: ",
    ),
    "a remediation": ("host_image", "action=apply", "the remediation is not over", ""),
    "an import": ("bitfusion_server", "ImportVApp", "the import is not over", ""),
}
"""What never ends: the kind, the request that begins it, what is said of it, and of what is out of service."""


class Clock:
    """That of all waits. Once it `runs`, two days go by each time that somebody looks at it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs, self._ahead = False, 0.0
        monkeypatch.setattr(waits, "now", self.now)

    def now(self) -> float:
        self._ahead += 2 * DAY if self.runs else 0.0
        return time.monotonic() + self._ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def applied(path: Path, sandbox: Any, amid: Amid, deadline: float | None) -> Outcome:
    return bfinfra.apply(
        bfinfra.load(path, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=Options(retry=QUICK, deadline=deadline),
        context=bfinfra.RunContext(sandbox=sandbox, retry=QUICK, middleware=(amid,)),
    )


@pytest.mark.thorough("a reconfiguration-None", "a reboot-3600.0", "a remediation-3600.0")
@pytest.mark.parametrize("deadline", [DEADLINE, None])
@pytest.mark.parametrize("what", ENDLESS)
def test_a_run_ends_where_a_step_does_not(
    what: str, deadline: float | None, sandbox: Any, tmp_path: Path, clock: Clock
) -> None:
    kind, begins, words, out = ENDLESS[what]
    made = ("a clone", "an import")  # the others are steps of what exists
    path = EXAMPLES[kind] if what in made else changed(kind, sandbox, tmp_path)

    def never() -> None:
        sandbox.pace(1e6)
        clock.runs = True

    amid = Amid(begins, never)
    try:
        outcome = applied(path, sandbox, amid, deadline)
    finally:
        sandbox.pace(0)
    said = summary.outcome(outcome)
    assert amid.begun
    assert outcome.ending == "still-waiting", endings(outcome)
    assert words in said
    assert ("the --deadline" in said) is (deadline is not None)
    assert [str(each).startswith(out) for each in outcome.out_of_service] == ([True] if out else [])
    assert "Run the same command again" in said
    assert sum(each.endswith("_Task") for each in amid.asked) <= 1, "it was begun again"
