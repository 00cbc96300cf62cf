"""What a lease says when it is ready, or failed: with its state, or a moment later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyVmomi import vim

from bfinfra.backends.vcenter import ovf
from bfinfra.backends.vcenter.ovf import Imports
from bfinfra.backends.vcenter.properties import Row
from bfinfra.model.errors import Rejected

INFO, FAULT = "what a ready lease says", vim.fault.InvalidName(name="one")
READY, FAILED = {"state": "ready", "info": INFO}, {"state": "error", "error": FAULT}


def taken(
    monkeypatch: pytest.MonkeyPatch, reported: dict[str, object], later: list[dict[str, object]]
) -> tuple[object, ...]:
    """What comes of a lease that says this as it is followed, and that when it is looked at."""
    monkeypatch.setattr(Imports, "_spec", lambda *_: (None, []))
    monkeypatch.setattr(ovf, "_abort", lambda lease: None)
    monkeypatch.setattr(ovf.properties, "one", lambda *_: Row("lease", later.pop()))
    session = SimpleNamespace(write=lambda _: "lease", read=lambda act: act(None), server="vc.test")
    tasks = SimpleNamespace(
        watch=lambda _lease, _paths, enough, *_, **__: reported if enough(reported) else None
    )
    return Imports(session, tasks, None, lambda: "")._lease(SimpleNamespace(name="one"))


@pytest.mark.parametrize(
    ("reported", "later"), [(READY, []), ({"state": "ready"}, [READY])], ids=["at once", "later"]
)
def test_a_ready_lease_says_where_to_send_what(monkeypatch, reported, later):
    assert taken(monkeypatch, reported, later) == ("lease", INFO, [])
    assert not later


@pytest.mark.parametrize(
    ("reported", "later"), [(FAILED, []), ({"state": "error"}, [FAILED])], ids=["at once", "later"]
)
def test_a_failed_lease_says_why(monkeypatch, reported, later):
    with pytest.raises(Rejected, match="vCenter refused the import of one"):
        taken(monkeypatch, reported, later)
    assert not later
