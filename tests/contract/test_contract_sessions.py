"""Sessions of both APIs: opening, ending, being refused; what goes wrong with any call."""

from __future__ import annotations

import datetime as dt

import pytest
from contract.calls import Account, call, lacks
from contract.sides import READER, VCenterSide
from pyVmomi import vim

from bfinfra.backends.vcenter import leftovers, properties, refs
from bfinfra.backends.vcenter.places import only
from bfinfra.model.errors import Busy, Denied, Expired, Forbidden, Missing, Rejected
from bfinfra.model.rights import Entity

CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"

VERSIONS = ("8.0.3.0", "9.0.0.0")
"""That vcsim and the sandbox have."""


@call("session.content", "session.close", case="log in, read, log out")
def test_a_session_is_opened_when_needed_and_closed(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    assert vc.session.content().about.apiVersion in VERSIONS
    vc.close()
    names = vc.transport.tally.names
    assert (names["Login"], names["Logout"]) == (1, 1)


@call("session.content", "session.close", case="the session of a run that was killed is ended by the next")
@lacks("cassettes: keys of sessions are not in them")
def test_what_a_killed_run_left_is_ended(
    vcenter: VCenterSide, monkeypatch: pytest.MonkeyPatch, account: Account
) -> None:
    monkeypatch.setattr(leftovers.process, "me", lambda: "contract/1")
    left, other = vcenter.open(site="contract"), vcenter.open(site="another")
    for each in (left, other):
        each.session.content()
    monkeypatch.setattr(leftovers.process, "me", lambda: "contract/2")
    monkeypatch.setattr(leftovers.process, "ended", lambda who: who == "contract/1")
    following = vcenter.open(site="contract")
    following.session.content()
    assert following.transport.tally.names["TerminateSession"] == 1
    with account.refused(Expired):
        left.session.write(lambda content: properties.one(content, content.rootFolder, ["name"]))
    other.session.write(lambda content: properties.one(content, content.rootFolder, ["name"]))


@call("session.content", case="a wrong password")
def test_a_wrong_password_is_denied(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(Denied) as failed:
        vcenter.open(password="wrong").session.content()
    assert "wrong" not in str(failed.value)


@call("session.read", case="the session ended: a read logs in again")
def test_a_read_survives_the_end_of_its_session(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    before = vc.inventory.read().hosts
    vc.session.content().sessionManager.Logout()
    assert vc.inventory.read().hosts == before
    assert vc.transport.tally.names["Login"] == 2


@call("session.write", case="the session ended: a write is not repeated")
def test_a_write_on_an_ended_session_is_not_repeated(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    host = only(vc.inventory.read().host(vcenter.host))
    assert host
    vc.session.content().sessionManager.Logout()
    with account.refused(Expired):
        vc.hosts.set_passthrough(host.moid, {"0000:17:00.0": True})
    assert vc.transport.tally.names["Login"] == 1


@call("session.read", case="the session ended: properties are not just missing")
def test_an_ended_session_never_looks_like_an_empty_world(vcenter: VCenterSide, account: Account) -> None:
    content = vcenter.open().session.content()
    content.sessionManager.Logout()
    with account.refused(Expired):
        properties.of(content, vim.Folder, [refs.moid(content.rootFolder)], ["name"], properties.whole)


@call("session.write", case="a privilege is missing")
@lacks("vcsim: privileges are stored and never enforced")
def test_without_a_right_a_write_is_denied_and_the_privilege_named(
    vcenter: VCenterSide, account: Account
) -> None:
    vc = vcenter.open(READER if vcenter.mode == "sandbox" else "administrator@vsphere.local")
    host = only(vc.inventory.read().host(vcenter.host))
    assert host
    with account.refused(Forbidden) as failed:
        vc.hosts.set_attribute(host.moid, "bfinfra.contract", "x")
    assert failed.value.privilege


@call("rights.lacking", case="the administrator; what isn't there")
def test_nothing_is_lacking_for_the_administrator(vcenter: VCenterSide) -> None:
    asked = {
        Entity(path, "HostSystem"): ("Host.Config.Maintenance",)
        for path in (f"/DC0/host/DC0_C0/{vcenter.host}", "/DC0/host/DC0_C0/nothing")
    }
    assert vcenter.open().grants.lacking(asked) == {"/DC0/host/DC0_C0/nothing": ()}


@call("rights.lacking", case="a reader")
@lacks("vcsim: privileges are stored and never enforced")
def test_rights_that_a_reader_lacks_are_reported(vcenter: VCenterSide) -> None:
    path = f"/DC0/host/DC0_C0/{vcenter.host}"
    vc = vcenter.open(READER if vcenter.mode == "sandbox" else "administrator@vsphere.local")
    assert vc.grants.lacking({Entity(path, "HostSystem"): ("System.Read", "Host.Config.Maintenance")}) == {
        path: ("Host.Config.Maintenance",)
    }


@call("client.now", "client.about", case="the server's clock and version")
def test_clock_and_version_are_reported(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    assert vc.about()[1] in VERSIONS
    now = vc.now()
    assert vcenter.mode == "cassette" or abs((now - dt.datetime.now(dt.UTC)).total_seconds()) < 60
    assert now.tzinfo


@call("session.write", case="the fault NoPermission, by a fault rule")
def test_the_fault_of_a_missing_privilege_is_denied(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    vc.inventory.read()
    vcenter.fault("CurrentTime", "NoPermission")
    with account.refused(Forbidden):
        vc.session.write(
            lambda content: properties.refs.refer(
                content, properties.vim.ServiceInstance, "ServiceInstance"
            ).CurrentTime()
        )


@pytest.mark.parametrize(
    ("name", "error"),
    [("NotAuthenticated", Expired), ("ManagedObjectNotFound", Missing), ("InvalidArgument", Rejected)],
)
@call("session.write", case="a fault of a method, by a fault rule")
def test_a_fault_is_recognised_by_its_class(
    name: str, error: type[Expired], vcenter: VCenterSide, account: Account
) -> None:
    vc = vcenter.open()
    vc.session.content()
    vcenter.fault("CurrentTime", name)
    with account.refused(error):
        vc.session.write(
            lambda content: properties.refs.refer(
                content, properties.vim.ServiceInstance, "ServiceInstance"
            ).CurrentTime()
        )


@pytest.mark.parametrize("name", ["TaskInProgress", "HostNotConnected"])
@call("session.write", case="the server is busy with the object, by a fault rule")
@lacks("vcsim: its fault injector doesn't know TaskInProgress and HostNotConnected", run=False)
def test_a_busy_object_is_busy(name: str, vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    vc.session.content()
    vcenter.fault("CurrentTime", name)
    with account.refused(Busy):
        vc.session.write(
            lambda content: properties.refs.refer(
                content, properties.vim.ServiceInstance, "ServiceInstance"
            ).CurrentTime()
        )


@call("session.write", case="503 Service Unavailable")
def test_a_server_that_is_not_available_is_busy(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    vc.session.content()
    vcenter.unavailable()
    with account.refused(Busy):
        vc.session.write(
            lambda content: properties.refs.refer(
                content, properties.vim.ServiceInstance, "ServiceInstance"
            ).CurrentTime()
        )


@call("rest.get", "rest.close", case="log in, read, log out")
def test_rest_opens_a_session_and_closes_it(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    assert isinstance(vc.rest.get(CLASSES), list)
    vc.rest.close()
    paths = [name.split()[1] for name in vc.transport.tally.names if name.startswith("DELETE")]
    assert len(paths) == 1
    account.note(f"session at {paths[0]}")


@call("rest.get", case="a wrong password")
def test_rest_refuses_a_wrong_password(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(Denied):
        vcenter.open(password="wrong").rest.get(CLASSES)


@call("rest.get", case="the session ended: a read logs in again")
def test_a_rest_read_survives_the_end_of_its_session(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    vc.rest.get(CLASSES)
    vc.rest.delete(vc.rest._session_path)  # the session ends, and the client doesn't know
    assert isinstance(vc.rest.get(CLASSES), list)


@call("rest.delete", case="the session ended: a write is not repeated")
def test_a_rest_write_on_an_ended_session_is_not_repeated(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    vc.rest.get(CLASSES)
    vc.rest.delete(vc.rest._session_path)
    with account.refused(Expired):
        vc.rest.delete(f"{CLASSES}/nothing")


@call("rest.get", case="no such path")
def test_a_path_that_is_not_there_is_missing(vcenter: VCenterSide, account: Account) -> None:
    with account.refused(Missing):
        vcenter.open().rest.get("/api/vcenter/nothing-of-the-kind")


@call("rest.bytes", "client.authorities", case="the certificates' archive")
@lacks("vcsim: /certs/download.zip is not there")
def test_the_servers_authorities_are_handed_out(vcenter: VCenterSide) -> None:
    assert "BEGIN CERTIFICATE" in vcenter.open().authorities()
