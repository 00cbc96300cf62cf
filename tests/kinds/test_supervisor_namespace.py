from __future__ import annotations

import re

from kinds.lifecycle import EXAMPLES, plan


def test_a_site_without_tanzu_asks_for_no_more_than_a_list_of_each_kind(sandbox):
    """Lists are needed to find what was deleted from the file."""
    sandbox.tally()
    found = plan(EXAMPLES["gpu_host"], sandbox)
    assert not found.unreadable
    asked = [call for call in sandbox.tally()["calls"]["rest"] if "/session" not in call]
    asked = [re.sub("[0-9a-f]{8}-[0-9a-f-]{27}", "{id}", call) for call in asked]
    assert sorted(asked) == ["GET /api/content/library", "GET /api/content/library/{id}", "GET /api/vcenter/namespace-management/virtual-machine-classes", "GET /api/vcenter/namespaces/instances",
                             "GET /api/vcenter/storage/policies"]
