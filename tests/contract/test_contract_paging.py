"""Bulk reads that come in several pages: nothing is lost between them, and an end in their midst is no short
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from contract.calls import Account, call, lacks
from contract.machines import MARK, imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter, properties, soap
from bfinfra.model.errors import Expired, Missing, Rejected

NEXT = "ContinueRetrievePropertiesEx"
READS: dict[str, Callable[[VCenter], Any]] = {
    "inventory": lambda vc: vc.inventory.read(),
    "capacity": lambda vc: vc.capacity.read(),
    "notes": lambda vc: vc.hosts.notes("bfinfra.contract"),
}


@pytest.mark.parametrize("what", READS)
@call("inventory.read", "capacity.read", "hosts.notes", case="in several pages: the same as in one")
def test_several_pages_say_the_same_as_one(
    what: str, vcenter: VCenterSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    vc = vcenter.open()
    whole = READS[what](vc)
    assert vc.transport.tally.names[NEXT] == 0
    monkeypatch.setattr(properties, "PAGE", 2)
    assert READS[what](vc) == whole
    assert vc.transport.tally.names[NEXT] >= 3


@call("machines.survey", "machines.read", case="in several pages: each machine once")
def test_machines_come_once_each_in_pages_of_one(
    vcenter: VCenterSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    vc = vcenter.open()
    moids = {imported(vcenter, vc, f"page-{n}") for n in range(3)}
    monkeypatch.setattr(properties, "PAGE", 1)
    assert sorted(b.moid for b in vc.machines.survey(MARK) if b.name.startswith("page-")) == sorted(moids)
    before = vc.transport.tally.names[NEXT]
    assert sorted(m.moid for m in vc.machines.read(sorted(moids), [MARK])) == sorted(moids)
    assert vc.transport.tally.names[NEXT] >= before + 2
    monkeypatch.setattr(properties, "PAGE", 500)


@call("session.read", case="the session ended between two pages: read again from the first")
def test_a_session_that_ends_between_two_pages(vcenter: VCenterSide, monkeypatch: pytest.MonkeyPatch) -> None:
    vc = vcenter.open()
    whole = vc.inventory.read()
    monkeypatch.setattr(properties, "PAGE", 2)
    ended, read = vc.session.content(), soap.Stub.read

    def ending(stub: soap.Stub, mo: Any, method: str, *args: Any) -> Any:
        if method == NEXT and vc.transport.tally.names["Logout"] == 0:
            ended.sessionManager.Logout()
        return read(stub, mo, method, *args)

    monkeypatch.setattr(soap.Stub, "read", ending)
    assert vc.inventory.read() == whole
    assert vc.transport.tally.names["Login"] == 2


@pytest.mark.parametrize(
    ("name", "error"), [("InvalidArgument", Rejected), ("ManagedObjectNotFound", Missing)]
)
@call("session.read", case="the next page is refused: no short answer")
def test_a_page_that_is_refused_is_no_short_answer(
    name: str, error: type[Rejected], vcenter: VCenterSide, monkeypatch: pytest.MonkeyPatch, account: Account
) -> None:
    vc = vcenter.open()
    hosts = [host.moid for host in vc.inventory.read().hosts]
    monkeypatch.setattr(properties, "PAGE", 1)
    vcenter.fault(NEXT, name)
    with account.refused(error):
        vc.hosts.read(hosts, MARK)


@call("session.write", case="a token that isn't open")
@lacks("vcsim: the fault of a page's token that isn't open has a type that vSphere doesn't have")
def test_a_page_that_nobody_opened_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    with account.refused(Rejected, Expired):
        vc.session.write(lambda content: content.propertyCollector.ContinueRetrievePropertiesEx("nobody's"))
