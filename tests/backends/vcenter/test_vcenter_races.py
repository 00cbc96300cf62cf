"""Another run of the site that was faster is no fault: what was to be done is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, machines, refs
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.vm import Attach, Hardware
from bfinfra.model.errors import Busy, Rejected
from bfinfra.sandbox import Running

HOST, FLAG = "esx01.small.test", "bfinfra.importing"


@pytest.fixture
def vcenter(sandbox: Running, tmp_path: Path) -> Iterator[VCenter]:
    (tmp_path / "site.yaml").write_text(
        "site: s\nvcenter: {server: vc.small.test, username: admin@small.test, password: {env: "
        "VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}\n"
    )
    made = VCenter(
        bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox).vcenter, Transport(route=sandbox.lookup)
    )
    yield made
    made.close()


@pytest.fixture
def host(vcenter: VCenter) -> Any:
    (moid, _), *_ = vcenter.hosts.notes("x").values()
    return vcenter.hosts.read([moid], "x")[0]


def test_maintenance_that_is_already_there_or_over(vcenter: VCenter, host: Any) -> None:
    for change in (vcenter.hosts.enter_maintenance, vcenter.hosts.exit_maintenance):
        change(host.moid)
        change(host.moid)


def test_a_refusal_for_another_reason_is_reported(vcenter: VCenter, host: Any, sandbox: Running) -> None:
    sandbox.faults({"api": "vcenter", "method": "EnterMaintenanceMode_Task", "do": {"task": "InvalidState"}})
    with pytest.raises(Rejected):
        vcenter.hosts.enter_maintenance(host.moid)


def test_a_host_that_has_started_meanwhile_is_not_rebooted_again(
    vcenter: VCenter, host: Any, sandbox: Running
) -> None:
    vcenter.hosts.enter_maintenance(host.moid)
    vcenter.hosts.reboot(host.moid, host.boot)
    vcenter.tasks.watch(
        host.ref,
        ("runtime.connectionState",),
        lambda v: v.get("runtime.connectionState") == "connected",
        "the reboot",
        limit=20,
    )
    vcenter.hosts.reboot(host.moid, host.boot)
    assert sandbox.tally()["writes"]["vcenter"]["RebootHost_Task"] == 1


def test_power_that_changes_between_the_look_and_the_act(
    vcenter: VCenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bool] = []

    def looks(before: bool) -> Callable[[str], bool]:
        """At first it looks as it was."""
        looked.clear()
        return lambda _: looked.append(True) or (before if len(looked) == 1 else not before)

    def refuse(*_: Any, **__: Any) -> None:
        raise Rejected("not in this power state")

    monkeypatch.setattr(vcenter.machines._tasks, "run", refuse)
    monkeypatch.setattr(vcenter.machines, "_on", looks(before=False))
    vcenter.machines.power_on("vm-1")
    monkeypatch.setattr(vcenter.machines, "_on", lambda _: False)
    with pytest.raises(Rejected):
        vcenter.machines.power_on("vm-1")


def test_a_card_whose_host_restarts_is_not_attached_without_the_hosts_name(
    vcenter: VCenter, host: Any, sandbox: Running
) -> None:
    """Such a backing would name no host, and nobody would notice."""
    inventory = vcenter.inventory.read()
    place, pool = only(inventory.folder("", inventory.datacenters[0].where)), inventory.clusters[0].pool
    assert place
    spec = vim.vm.ConfigSpec(
        name="a",
        guestId="other3xLinux64Guest",
        files=vim.vm.FileInfo(vmPathName=f"[{inventory.datastores[0].name}]"),
        numCPUs=1,
        memoryMB=1024,
    )
    vcenter.tasks.run(
        lambda c: refs.refer(c, vim.Folder, place.moid).CreateVM_Task(
            spec, refs.refer(c, vim.ResourcePool, pool), host.ref
        ),
        "making it",
    )
    ((moid, before),) = (
        (b.moid, sandbox.tally()["writes"]["vcenter"].get("ReconfigVM_Task", 0))
        for b in vcenter.machines.survey("x")
        if b.name == "a"
    )
    with pytest.raises(Busy, match="not active at the moment"):
        vcenter.machines.reconfigure(
            moid,
            Hardware(attach=(Attach(vendor=0x10DE, device=0x1DB6, address="0000:3b:00.0", name="card"),)),
        )
    assert sandbox.tally()["writes"]["vcenter"].get("ReconfigVM_Task", 0) == before


def imported(vcenter: VCenter, host: Any) -> str:
    """A machine that notes that its import isn't whole."""
    inventory = vcenter.inventory.read()
    place, pool = only(inventory.folder("", inventory.datacenters[0].where)), inventory.clusters[0].pool
    assert place
    spec = vim.vm.ConfigSpec(
        name="half",
        guestId="other3xLinux64Guest",
        files=vim.vm.FileInfo(vmPathName=f"[{inventory.datastores[0].name}]"),
        numCPUs=1,
        memoryMB=1024,
        extraConfig=[vim.option.OptionValue(key=FLAG, value="another/machine/1")],
    )
    made = vcenter.tasks.run(
        lambda c: refs.refer(c, vim.Folder, place.moid).CreateVM_Task(
            spec, refs.refer(c, vim.ResourcePool, pool), host.ref
        ),
        "making it",
    )
    return refs.moid(made)


def finish(vcenter: VCenter, moid: str) -> None:
    vcenter.machines.reconfigure(moid, Hardware(extra={FLAG: ""}))


def later(act: Callable[[], None]) -> threading.Thread:
    made = threading.Timer(0.2, act)
    made.start()
    return made


def test_an_import_that_ended_a_moment_ago_is_given_the_time_to_be_noted_as_whole(
    vcenter: VCenter, host: Any, sandbox: Running
) -> None:
    """Between the end of an import and the note of that lies a request of the other machine."""
    moid = imported(vcenter, host)
    other = later(lambda: finish(vcenter, moid))
    vcenter.machines.discard(moid, FLAG, cancel=False)
    other.join()
    assert vcenter.machines.read([moid], [FLAG])[0].extra == {}
    assert "Destroy_Task" not in sandbox.tally()["writes"]["vcenter"]


def test_nobody_waits_for_the_end_of_a_machine_that_was_finished_instead(
    vcenter: VCenter, host: Any, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deletion met the note that it is whole: a wait for its going would have lasted six minutes."""
    monkeypatch.setattr(machines, "HANDOVER", 0)
    moid = imported(vcenter, host)
    sandbox.faults({"api": "vcenter", "method": "Destroy_Task", "nth": 1, "do": {"task": "TaskInProgress"}})
    other = later(lambda: finish(vcenter, moid))
    vcenter.machines.discard(moid, FLAG, cancel=False)
    other.join()
    assert vcenter.machines.read([moid], [FLAG])[0].extra == {}


def test_what_nobody_finishes_goes(vcenter: VCenter, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "HANDOVER", 0)
    moid = imported(vcenter, host)
    vcenter.machines.discard(moid, FLAG, cancel=False)
    assert vcenter.machines.read([moid], [FLAG]) == []


def test_a_half_made_machine_that_somebody_powered_on_goes(
    vcenter: VCenter, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every machine that runs lists Destroy_Task among what can't be done now: it is stopped, not
    waited for.
    """
    monkeypatch.setattr(machines, "HANDOVER", 0)
    monkeypatch.setattr(machines, "LAPSE", 1)
    moid = imported(vcenter, host)
    vcenter.machines.power_on(moid)
    vcenter.machines.discard(moid, FLAG, cancel=False)
    assert vcenter.machines.read([moid], [FLAG]) == []
