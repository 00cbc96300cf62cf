"""What vCenter reports of its objects while they are followed."""

from __future__ import annotations

from contract.calls import Account, call
from contract.machines import imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.changes import Changes
from bfinfra.model.errors import Expired


@call("changes.start", "changes.wait", "changes.cancel", case="a machine changes and goes")
def test_a_machine_that_changes_and_goes_is_reported(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "followed-from-afar")
    vc.inventory.read()
    vc.machines.read([moid], [])
    changes = Changes(vc.session)
    changes.start()
    assert "modify" in {each.how for each in changes.wait(1) if each.moid == moid}  # it is followed alone
    vc.tasks.run(lambda _: vc.machines._ref(moid).PowerOnVM_Task(None), "powering on")
    seen = changes.wait(5)
    assert "runtime.powerState" in {path for each in seen if each.moid == moid for path in each.paths}
    vc.tasks.run(lambda _: vc.machines._ref(moid).PowerOffVM_Task(), "powering off")
    vc.machines.destroy(moid)
    gone: set[str] = set()
    for _ in range(5):
        gone |= {each.moid for each in changes.wait(5) if each.how == "leave"}
        if moid in gone:
            break
    assert moid in gone
    changes.cancel()


@call("changes.extend", case="what is read later is followed too")
def test_what_is_read_later_is_followed_too(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "followed-late")
    vc.inventory.read()
    changes = Changes(vc.session)
    changes.start()
    assert moid not in {each.moid for each in changes.wait(1)}
    assert not changes.extend()
    vc.machines.read([moid], [])
    assert not changes.extend(), "an object alone is of no further type"
    changes.wait(1)
    vc.tasks.run(lambda _: vc.machines._ref(moid).PowerOnVM_Task(None), "powering on")
    seen = changes.wait(5)
    assert "runtime.powerState" in {path for each in seen if each.moid == moid for path in each.paths}
    changes.cancel()
    vc.tasks.run(lambda _: vc.machines._ref(moid).PowerOffVM_Task(), "powering off")
    vc.machines.destroy(moid)


@call("changes.wait", case="the session is gone: changes can't be followed")
def test_following_ends_with_the_session(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    vc.inventory.read()
    changes = Changes(vc.session)
    changes.start()
    vcenter.fault("WaitForUpdatesEx", "NotAuthenticated")
    with account.refused(Expired):
        changes.wait(1)
