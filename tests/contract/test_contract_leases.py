"""Leases of clusters, and what is noted on a host before it enters maintenance mode."""

from __future__ import annotations

import pytest
from contract.calls import Account, call
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter, leases
from bfinfra.backends.vcenter.esxi import HostDetail
from bfinfra.backends.vcenter.places import only
from bfinfra.model import process
from bfinfra.model.errors import Conflict

BEGUN = "bfinfra.maintenance.gpu_host"


def detail(vc: VCenter, side: VCenterSide) -> HostDetail:
    found = only(vc.inventory.read().host(side.host))
    assert found
    (host,) = vc.hosts.read([found.moid], "bfinfra.mark")
    return host


@call(
    "leases.take",
    "leases.look",
    "leases.read",
    "leases.other",
    "leases.confirm",
    "leases.leave",
    "leases.held",
    "leases.warning",
    "leases.close",
    case="one has it, the other is told; then it is free",
)
def test_one_of_two_has_a_lease(
    vcenter: VCenterSide, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_now", lambda: "2026-11-28T12:00:00Z")  # a cassette has the same each time
    monkeypatch.setattr(process, "me", lambda: "somewhere/1")
    first, second = vcenter.open(), vcenter.open()
    cluster = detail(first, vcenter).cluster
    first.leases.take(cluster, "a")
    first.leases.confirm(cluster)
    with account.refused(Conflict):
        second.leases.take(cluster, "b")
    second.leases.read()
    assert second.leases.other(cluster) is not None
    first.leases.leave(cluster, "a")
    assert first.leases.warning() == ""
    second.leases.read()
    assert second.leases.other(cluster) is None
    with second.leases.held(cluster, "b"):
        pass
    second.leases.close()


@call("hosts.begin", "hosts.clear_attribute", "hosts.drop_attribute", case="as it was decided for")
def test_what_begins_is_noted(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    host = detail(vc, vcenter)
    vc.hosts.begin(host.moid, BEGUN, "from:x", boot=host.boot, maintenance=False)
    assert detail(vc, vcenter).attributes[BEGUN] == "from:x"
    vc.hosts.clear_attribute(host.moid, BEGUN)
    assert BEGUN not in detail(vc, vcenter).attributes
    vc.hosts.drop_attribute(host.moid, BEGUN)


@call("hosts.begin", case="it has started since: nothing stays noted")
def test_nothing_begins_on_a_host_that_has_changed(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    host = detail(vc, vcenter)
    with account.refused(Conflict):
        vc.hosts.begin(host.moid, BEGUN, "from:x", boot="2001-01-01T00:00:00+00:00", maintenance=False)
    assert BEGUN not in detail(vc, vcenter).attributes
    vc.hosts.drop_attribute(host.moid, BEGUN)
