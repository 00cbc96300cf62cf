"""A lease that really runs out: nobody gives a sign of life while an upload stalls, until the server ends the
lease and takes its machine along.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, EXAMPLES, apply, endings, made, plan, run_context
from pyVmomi import vim
from rights.given import administrator

import bfinfra
from bfinfra import sandbox as sandboxes
from bfinfra.engine.apply import Options
from bfinfra.engine.retry import RetryPolicy
from bfinfra.sandbox import SMALL_WORLD, Running

LEASE = 2.0  # seconds that it lives without a sign of life
EXAMPLE = EXAMPLES["bitfusion_server"]


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Running]:
    """The small world with leases that end soon."""
    given = yaml.safe_load(SMALL_WORLD.read_text())
    given["durations"] = {**given.get("durations", {}), "lease": LEASE}
    (tmp_path / "world.yaml").write_text(yaml.safe_dump(given))
    yield sandboxes.start(tmp_path / "world.yaml", tmp_path / "sandbox", pace=0)
    sandboxes.stop(tmp_path / "sandbox")


def machines(sandbox: Running) -> list[str]:
    with administrator(sandbox) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.VirtualMachine], True)
        return [vm.name for vm in view.view]


@pytest.mark.thorough
def test_a_lease_that_ran_out_is_reported_leaves_nothing_and_the_next_apply_finishes(hasty: Running) -> None:
    before = machines(hasty)
    hasty.faults(
        {"api": "vcenter", "method": "HttpNfcLeaseProgress", "do": {"status": 503}},
        {"api": "esx", "method": "P* *", "do": {"delay": 1.5 * LEASE}},
    )
    once = RetryPolicy(attempts=1, lasts=0)
    outcome = bfinfra.apply(
        bfinfra.load(EXAMPLE, sandbox=hasty),
        approve=lambda _: EVERYTHING,
        options=Options(retry=once),
        context=run_context(hasty),
    )
    message = endings(outcome)["bitfusion_server/bf-01"]
    assert "vCenter ended the import of bf-01; The lease timed out" in message
    assert "run this again" in message
    assert machines(hasty) == before
    assert hasty.tally()["writes"]["vcenter"].get("PowerOnVM_Task", 0) == 0
    hasty.clear_faults()
    again = apply(EXAMPLE, hasty)
    assert made(again), endings(again)
    assert plan(EXAMPLE, hasty).pending == ()
