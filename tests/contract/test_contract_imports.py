"""Importing an OVF: the specification, the lease, the upload, and every way in which it ends badly."""

from __future__ import annotations

import io
import threading
from dataclasses import replace

import pytest
from contract.calls import Account, call, lacks
from contract.machines import DATA, GIB, MARK, gone, import_spec, imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import ovf
from bfinfra.backends.vcenter.vm import Hardware
from bfinfra.model.errors import Busy, Exists, Missing, Rejected
from bfinfra.sandbox.factories.vmdk import make_vmdk

UPLOADS = "cassettes: uploads stay out of them"


@call("ovf.run", case="without disks: specification, lease, end")
def test_an_import_carries_its_mark_and_hardware(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(
        vcenter,
        vc,
        "plain",
        surplus=frozenset({0}),
        hardware=Hardware(cpus=2, memory=8 << 30, reserve=True, firmware="efi", extra={MARK: "m"}),
    )
    (found,) = vc.machines.read([moid], [MARK])
    assert (found.extra, found.cpus, found.memory, found.reserved, found.firmware, found.nics) == (
        {MARK: "m"},
        2,
        8 << 30,
        True,
        "efi",
        (),
    )
    names = vc.transport.tally.names
    assert (
        names["CreateImportSpec"],
        names["ImportVApp"],
        names["HttpNfcLeaseComplete"],
        names["HttpNfcLeaseAbort"],
    ) == (1, 1, 1, 0)


@call("ovf.run", case="with a disk: the mark is there before the first byte")
@lacks(UPLOADS)
def test_an_upload_comes_whole(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    seen: list[str] = []

    def look(done: int, total: int) -> None:
        assert 0 < done <= total == len(DATA)
        seen.extend(b.moid for b in vc.machines.survey(MARK) if b.mark == "mark of disk")

    moid = vc.imports.run(import_spec(vcenter, vc, "disk", disk=True), look)
    vcenter.closing.append(lambda: gone(vc, moid))
    assert seen == [moid]
    assert [d.capacity for d in vc.machines.read([moid], [])[0].disks] == [1 << 30]


@call("ovf.run", case="the name is taken")
@lacks(UPLOADS)
def test_a_name_that_is_taken(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    imported(vcenter, vc, "taken", disk=True)
    with account.refused(Exists):
        vc.imports.run(import_spec(vcenter, vc, "taken", disk=True), lambda *_: None)
    assert (
        vc.transport.tally.names["ImportVApp"] == 1
    )  # what is refused leaves a folder on the datastore of some servers


@call("ovf.run", case="a required property is missing")
@lacks("vcsim: CreateImportSpec and PowerOn don't mind what properties an OVF requires")
def test_an_unset_property_keeps_the_machine_off(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "unset", properties={"hostname": ""})
    with account.refused(Rejected):
        vc.machines.power_on(moid)


@call("ovf.run", case="a property that the OVF doesn't have")
@lacks("vcsim: a property that the OVF doesn't have is ignored")
def test_an_unknown_property_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    with account.refused(Rejected):
        imported(vcenter, vc, "unknown", properties={"nothing.of.the.kind": "x"})


@call("ovf.run", case="something that is no OVF")
def test_what_is_no_ovf_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    with account.refused(Rejected):
        vc.imports.run(import_spec(vcenter, vc, "nonsense", descriptor="this is no XML"), lambda *_: None)


@pytest.mark.parametrize("what", ["pool", "folder"])
@call("ovf.run", case="a pool or folder that isn't there")
@lacks(
    "vcsim: an import into a pool or folder that isn't there makes it panic, and imports hang from then on",
    run=False,
)
def test_a_place_that_is_not_there_is_missing(what: str, vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    with account.refused(Missing):
        vc.imports.run(
            import_spec(
                vcenter, vc, "nowhere", **{what: {"pool": "resgroup-99999", "folder": "group-v99999"}[what]}
            ),
            lambda *_: None,
        )


@call("ovf.run", case="the upload breaks: the lease is given up, and nothing is left")
@lacks(UPLOADS)
@lacks("vcsim: giving a lease up leaves its machine")
def test_a_broken_upload_leaves_nothing(vcenter: VCenterSide) -> None:
    vc = vcenter.open()

    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        vc.imports.run(
            replace(import_spec(vcenter, vc, "broken", disk=True), open=lambda _: Broken()), lambda *_: None
        )
    assert vc.transport.tally.names["HttpNfcLeaseAbort"] == 1
    assert [b.name for b in vc.machines.survey(MARK) if b.name == "broken"] == []


@call("ovf.run", case="fewer bytes than the descriptor says")
@lacks(UPLOADS)
@lacks("vcsim: sizes of uploads are not checked")
def test_a_short_upload_is_refused(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    short = make_vmdk(GIB, 100_000, "short")
    with account.refused(Rejected):
        vc.imports.run(
            replace(
                import_spec(vcenter, vc, "short", disk=True),
                files={"disk1.vmdk": len(short)},
                open=lambda _: io.BytesIO(short),
            ),
            lambda *_: None,
        )


@call("ovf.run", case="nobody reports progress: the lease times out")
@lacks(UPLOADS)
@lacks("vcsim: leases never time out", run=False)
def test_a_lease_that_nobody_keeps_alive_times_out(
    vcenter: VCenterSide, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    vc = vcenter.open()
    monkeypatch.setattr(ovf.KeepAlive, "_beat", lambda _: None)
    over = threading.Event()

    class Stalled(io.BytesIO):
        def read(self, size=-1):
            for moid in [b.moid for b in vc.machines.survey(MARK) if b.name == "stalled"]:
                vc.tasks.watch(
                    vc.machines._ref(moid), ("name",), lambda _: over.is_set(), "the lapse", limit=10
                )
            return super().read(size)

    with account.refused(Missing, Busy):
        vc.imports.run(
            replace(import_spec(vcenter, vc, "stalled", disk=True), open=lambda _: Stalled(DATA)),
            lambda *_: None,
        )
    assert [b.name for b in vc.machines.survey(MARK) if b.name == "stalled"] == []


@call("ovf.run", case="the server can't keep the lease, by a fault rule")
@lacks("vcsim: its fault injector fails calls, not leases", run=False)
def test_a_lease_in_error_says_why(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    given = import_spec(vcenter, vc, "refused", hardware=Hardware(extra={MARK: "x"}))
    vcenter.fail_task("ImportVApp", "InsufficientResourcesFault")
    with account.refused(Rejected):
        vc.imports.run(given, lambda *_: None)
    assert vc.machines.survey(MARK) == []
