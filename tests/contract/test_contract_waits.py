"""Waiting for a task or a lease: what ends the wait without ending what is waited for."""

from __future__ import annotations

from typing import Any

import pytest
from contract.calls import Account, call
from contract.machines import imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.model.errors import Missing, Unanswered

WAIT = "WaitForUpdatesEx"


def started(vc: VCenter, moid: str) -> Any:
    return vc.session.write(lambda _: vc.machines._ref(moid).PowerOnVM_Task(None))


@pytest.mark.parametrize("name", ["NotAuthenticated", "ManagedObjectNotFound"])
@call("tasks.wait", case="the wait breaks: its session or its collector is gone; the task's end is not known")
def test_a_wait_that_breaks_says_that_the_end_is_not_known(
    name: str, vcenter: VCenterSide, account: Account
) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, f"waited-{name.lower()}")
    vcenter.fault(WAIT, name)
    with account.refused(Unanswered):
        vc.tasks.wait(started(vc, moid), "powering on")
    vcenter.until(lambda: vc.machines.read([moid], [])[0].on)


@call("tasks.watch", case="what is followed is gone")
def test_what_is_followed_and_gone_is_missing(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "followed")
    vc.machines.destroy(moid)
    with account.refused(Missing):
        vc.tasks.watch(vc.machines._ref(moid), ("name",), lambda _: False, "nothing", limit=5)


@call("tasks.watch", case="what is followed goes meanwhile")
def test_what_goes_while_it_is_followed_is_missing(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "leaving")

    def gone(_: Any) -> bool:
        if vc.transport.tally.names["Destroy_Task"] == 0:
            vc.session.write(lambda _: vc.machines._ref(moid).Destroy_Task())
        return False

    with account.refused(Missing):
        vc.tasks.watch(vc.machines._ref(moid), ("name",), gone, "nothing", limit=5)


@call("ovf.run", case="the wait for its lease breaks: it is given up")
def test_a_lease_whose_wait_breaks_is_given_up(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    vc.session.content()
    vcenter.fault(WAIT, "NotAuthenticated")
    with account.refused(Unanswered):
        imported(vcenter, vc, "given-up")
    assert vc.transport.tally.names["HttpNfcLeaseAbort"] == 1
