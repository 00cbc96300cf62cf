"""A server whose run was killed amid its import, and one that another run imports meanwhile, on the
sandbox.
"""

from __future__ import annotations

import pytest
from kinds.lifecycle import EXAMPLES, KILLED, apply, difference, endings, kill_at, made, world

from bfinfra.model.events import StepBegun, StepEnded

pytestmark = pytest.mark.thorough

SITE = EXAMPLES["bitfusion_server"]


@pytest.mark.parametrize("method", ["ImportVApp", "HttpNfcLeaseComplete"])
def test_a_destroy_ends_the_import_that_a_killed_apply_left_open(method, sandbox, tmp_path):
    before = world(sandbox)
    assert kill_at(SITE, sandbox, 1, "after", tmp_path / "killed", method=method) == KILLED
    gone = apply(SITE, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before, difference(world(sandbox), before)


def test_an_import_that_meets_another_one_leaves_no_second_folder(sandbox, tmp_path):
    """The other run begins its import when this one has decided to, and is killed with its lease open."""
    assert made(apply(SITE, sandbox))
    whole = world(sandbox)
    sandbox.reset()
    ends = []
    apart = Another(lambda: kill_at(SITE, sandbox, 1, "after", tmp_path / "another", method="ImportVApp"))
    found = apply(SITE, sandbox, on_event=lambda event: (apart(event), ends.append(event)))
    assert apart.came == KILLED
    assert made(found), endings(found)
    assert world(sandbox) == whole, difference(world(sandbox), whole)
    [ended] = [event for event in ends if isinstance(event, StepEnded) and event.problem]
    assert (ended.problem.what, ended.again) == ("vCenter has a VM bf-01 in this folder already", True)


def test_a_server_that_another_run_made_meanwhile_is_taken_as_it_is(sandbox, tmp_path, monkeypatch):
    sandbox.reset()
    sandbox.clear_tally()

    def whole_run():
        monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "another"))
        assert made(apply(SITE, sandbox))
        return world(sandbox)

    apart = Another(whole_run)
    found = apply(SITE, sandbox, on_event=apart)
    assert made(found), endings(found)
    assert world(sandbox) == apart.came, difference(world(sandbox), apart.came)
    assert sandbox.tally()["writes"]["vcenter"]["ImportVApp"] == 1


class Another:
    """What somebody else does once, right before a server is imported; `came`: what came of it."""

    def __init__(self, what):
        self._what, self.came = what, None

    def __call__(self, event):
        if self.came is None and isinstance(event, StepBegun) and "import" in event.title:
            self.came = self._what()
