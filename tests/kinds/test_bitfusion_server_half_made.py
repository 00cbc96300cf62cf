"""A server whose run was killed amid its import, on the sandbox."""

from __future__ import annotations

import pytest
from kinds.lifecycle import EXAMPLES, KILLED, apply, difference, endings, kill_at, made, world

SITE = EXAMPLES["bitfusion_server"]


@pytest.mark.parametrize("method", ["ImportVApp", "HttpNfcLeaseComplete"])
def test_a_destroy_ends_the_import_that_a_killed_apply_left_open(method, sandbox, tmp_path):
    before = world(sandbox)
    assert kill_at(SITE, sandbox, 1, "after", tmp_path / "killed", method=method) == KILLED
    gone = apply(SITE, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before, difference(world(sandbox), before)
