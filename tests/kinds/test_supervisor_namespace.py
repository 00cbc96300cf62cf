from __future__ import annotations

from kinds.lifecycle import EXAMPLES, plan


def test_a_site_without_namespaces_asks_for_no_more_than_their_list(sandbox):
    """Their list is needed to find what was deleted from the file; a vCenter without supervisors answers little else."""
    sandbox.tally()
    found = plan(EXAMPLES["gpu_host"], sandbox)
    assert not found.unreadable
    asked = [call for call in sandbox.tally()["calls"]["rest"] if "/session" not in call]
    assert asked == ["GET /api/vcenter/namespaces/instances"]
