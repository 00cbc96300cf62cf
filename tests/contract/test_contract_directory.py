"""Who is in the directories that vCenter asks."""

from __future__ import annotations

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.directory import Found
from bfinfra.model.errors import Forbidden


@call("directory.find", case="a user, a group, and nobody of this spelling")
def test_users_and_groups_are_distinguished(vcenter: VCenterSide) -> None:
    directory = vcenter.open().directory
    assert directory.find("admin@vsphere.local") == Found(user=True)
    assert directory.find("root@vsphere.local").group
    nobody = directory.find("admyn@vsphere.local")
    assert (nobody.user, nobody.group) == (False, False)
    assert "admin@vsphere.local" in nobody.users


@call("directory.find", case="a domain that isn't there")
@lacks("vcsim: its directory has one domain, whatever it is called")
def test_a_domain_that_is_not_there_holds_nobody(vcenter: VCenterSide) -> None:
    assert vcenter.open().directory.find("admin@elsewhere.local") == Found()


@call("directory.find", case="letters' case")
@lacks("vcsim: its directory minds the case of letters")
def test_the_case_of_letters_does_not_count(vcenter: VCenterSide) -> None:
    assert vcenter.open().directory.find("Admin@VSPHERE.local") == Found(user=True)


@call("directory.find", case="without the right to ask")
def test_who_may_not_ask_is_denied(vcenter: VCenterSide, account: Account) -> None:
    directory = vcenter.open().directory
    vcenter.fault("RetrieveUserGroups", "NoPermission")
    with account.refused(Forbidden):
        directory.find("admin@vsphere.local")
