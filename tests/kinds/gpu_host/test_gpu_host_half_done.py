"""A host whose run was killed while it switched its cards, on the sandbox: a destroy puts all back, as far as
it was done.
"""

from __future__ import annotations

import pytest
from kinds.lifecycle import EXAMPLES, KILLED, apply, difference, endings, kill_at, made, plan, world

pytestmark = pytest.mark.thorough

SITE = EXAMPLES["gpu_host"]


@pytest.mark.parametrize(
    ("method", "reboots"),
    [
        ("UpdatePassthruConfig", 0),
        ("EnterMaintenanceMode_Task", 2),
        ("RebootHost_Task", 1),
        ("ExitMaintenanceMode_Task", 1),
    ],
)
def test_what_a_killed_apply_switched_and_rebooted_for_goes_back_by_another_reboot(
    method, reboots, sandbox, tmp_path
):
    before = world(sandbox)
    assert kill_at(SITE, sandbox, 1, "after", tmp_path / "killed", method=method) == KILLED
    shown = [type(step).__name__ for item in plan(SITE, sandbox, destroy=True).pending for step in item.steps]
    assert shown.count("Reboot") == reboots, shown
    gone = apply(SITE, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before, difference(world(sandbox), before)


def test_a_committed_note_holds_nothing_of_reboots_any_more(sandbox):
    assert made(apply(SITE, sandbox))
    assert "reboot=" not in world(sandbox)
