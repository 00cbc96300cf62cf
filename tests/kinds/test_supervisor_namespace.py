from __future__ import annotations

from kinds.lifecycle import EXAMPLES, plan


def test_a_site_without_tanzu_asks_for_no_more_than_a_list_of_each_kind(sandbox):
    """Lists are needed to find what was deleted from the file."""
    sandbox.tally()
    found = plan(EXAMPLES["gpu_host"], sandbox)
    assert not found.unreadable
    asked = [call for call in sandbox.tally()["calls"]["rest"] if "/session" not in call]
    assert sorted(asked) == ["GET /api/vcenter/namespace-management/virtual-machine-classes", "GET /api/vcenter/namespaces/instances"]
