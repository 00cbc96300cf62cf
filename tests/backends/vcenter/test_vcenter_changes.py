"""What vCenter reports while it is followed: page by page, with what there is not, and each way it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, reads
from bfinfra.backends.vcenter.changes import Changes
from bfinfra.model.errors import RemoteError
from bfinfra.sandbox import Running

SITE = """
site: views
vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
"""
WAIT = "WaitForUpdatesEx"


@pytest.fixture
def vcenter(sandbox: Running, tmp_path: Path) -> Iterator[VCenter]:
    (tmp_path / "site.yaml").write_text(SITE)
    transport = Transport(route=sandbox.lookup, read_only=True)
    settings = bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox).vcenter
    assert settings
    made = VCenter(settings, transport)
    yield made
    made.close()
    transport.close()


def followed(vcenter: VCenter) -> Changes:
    vcenter.inventory.read()
    changes = Changes(vcenter.session)
    changes.start()
    return changes


def test_an_object_that_went_before_it_could_be_followed_has_left(vcenter: VCenter) -> None:
    reads.of_session(vcenter.session.content()).some(vim.VirtualMachine, ["vm-none"], ["name"])
    seen = {each.moid: each.how for each in followed(vcenter).wait(1)}
    assert seen["vm-none"] == "leave"
    assert "enter" in seen.values()


def test_all_pages_of_an_answer_are_read(
    sandbox: Running, vcenter: VCenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {each.moid for each in followed(vcenter).wait(1)}
    monkeypatch.setattr("bfinfra.backends.vcenter.changes.PAGE", 1)
    sandbox.clear_tally()
    assert {each.moid for each in followed(vcenter).wait(1)} == whole
    assert sandbox.tally()["calls"]["vcenter"][WAIT] >= len(whole) > 1


@pytest.mark.parametrize(
    "deed",
    [
        {"soap": "NotAuthenticated"},
        {"soap": "ManagedObjectNotFound"},
        {"soap": "InvalidCollectorVersion"},
        {"soap": "RequestCanceled"},
        {"status": 503},
        {"half": True},
        "reset_before",
        "reset_after",
        {"expire": True},
    ],
    ids=str,
)
def test_what_ends_the_reports_is_an_error_and_never_silence(
    sandbox: Running, vcenter: VCenter, deed: Any
) -> None:
    changes = followed(vcenter)
    changes.wait(1)
    sandbox.faults({"api": "vcenter", "method": WAIT, "nth": 1, "do": deed})
    with pytest.raises(RemoteError):
        changes.wait(0)
        changes.wait(0)
