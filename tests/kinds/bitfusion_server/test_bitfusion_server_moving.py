"""What moves between the plan and a step on the sandbox: a server is looked at by its VM's id, and made
without a look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EVERYTHING, EXAMPLES, LONG, QUICK, endings, made, run_context
from pyVmomi import vim

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, refs
from bfinfra.backends.vcenter.places import only
from bfinfra.engine.apply import Options
from bfinfra.kinds.vcenter.bitfusion_server.state import MARK
from bfinfra.model.outcome import Outcome
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

PATH = EXAMPLES["bitfusion_server"]
TEMPLATE = "centos-7.6"  # of the small world


@pytest.fixture
def vcenter(sandbox: Running) -> Iterator[VCenter]:
    """Somebody else's."""
    found = VCenter(bfinfra.load(PATH, sandbox=sandbox).vcenter, Transport(route=sandbox.lookup))
    yield found
    found.close()


def apply(sandbox: Running, between: Callable[[], Any], path: Path = PATH, **how: Any) -> Outcome:
    def approve(_: Any) -> Any:
        between()
        return EVERYTHING

    return bfinfra.apply(
        bfinfra.load(path, sandbox=sandbox),
        approve=approve,
        options=Options(retry=QUICK, deadline=LONG),
        context=run_context(sandbox),
        **how,
    )


def the_server(vcenter: VCenter) -> Any:
    (found,) = (each for each in vcenter.machines.survey(MARK) if each.name != TEMPLATE)
    return found


def test_a_strangers_vm_that_takes_the_name_after_the_plan_is_seen_and_left_alone(sandbox, vcenter):
    def take() -> None:
        inventory = vcenter.inventory.read()
        place, pool = only(inventory.folder("", inventory.datacenters[0].where)), inventory.clusters[0].pool
        files = vim.vm.FileInfo(vmPathName=f"[{inventory.datastores[0].name}]")
        spec = vim.vm.ConfigSpec(
            name="bf-01", guestId="other3xLinux64Guest", files=files, numCPUs=1, memoryMB=1024
        )
        vcenter.tasks.run(
            lambda c: refs.refer(c, vim.Folder, place.moid).CreateVM_Task(
                spec, refs.refer(c, vim.ResourcePool, pool), None
            ),
            "making it",
        )

    outcome = apply(sandbox, take)
    assert "did not make it" in endings(outcome)["bitfusion_server/bf-01"]
    assert the_server(vcenter).mark == ""


def test_a_vm_that_somebody_deletes_after_the_plan_is_looked_for_and_not_found(sandbox, vcenter):
    assert made(apply(sandbox, lambda: None))

    def delete() -> None:
        vcenter.machines.stop(the_server(vcenter).moid)
        vcenter.machines.destroy(the_server(vcenter).moid)

    assert made(apply(sandbox, delete, destroy=True))


def test_a_vm_whose_mark_somebody_takes_away_after_the_plan_is_no_longer_ours_to_delete(sandbox, vcenter):
    assert made(apply(sandbox, lambda: None))
    unmark = vim.vm.ConfigSpec(extraConfig=[vim.option.OptionValue(key=MARK, value="")])

    def forget() -> None:
        vcenter.tasks.run(
            lambda c: refs.refer(c, vim.VirtualMachine, the_server(vcenter).moid).ReconfigVM_Task(unmark),
            "taking its mark away",
        )

    apply(sandbox, forget, destroy=True)
    assert the_server(vcenter).name == "bf-01"


def pool(vcenter: VCenter) -> str:
    """A resource pool of that name, made anew where it is there."""
    inventory = vcenter.inventory.read()
    home = only(inventory.host("esx1.small.test"))
    found = only(inventory.pool("gpu", home.cluster))

    def make(content: Any) -> Any:
        if found is not None:
            vcenter.tasks.wait(
                refs.refer(content, vim.ResourcePool, found.moid).Destroy_Task(), "removing it"
            )
        share = vim.ResourceAllocationInfo(
            reservation=0,
            limit=-1,
            expandableReservation=True,
            shares=vim.SharesInfo(level="normal", shares=0),
        )
        spec = vim.ResourceConfigSpec(cpuAllocation=share, memoryAllocation=share)
        return refs.refer(
            content,
            vim.ResourcePool,
            next((p for p in inventory.pools if p.owner == home.cluster and p.root), None).moid,
        ).CreateResourcePool("gpu", spec)

    return refs.moid(vcenter.session.write(make))


def test_a_pool_that_is_made_anew_after_the_plan_is_looked_up_again(sandbox, vcenter, tmp_path: Path):
    path = tmp_path / "site.yaml"
    path.write_text(PATH.read_text().replace("    gpus: 1\n", "    gpus: 1\n    resource_pool: gpu\n"))
    ids = [pool(vcenter)]
    assert made(apply(sandbox, lambda: ids.append(pool(vcenter)), path=path))
    (found,) = vcenter.machines.read([the_server(vcenter).moid], [])
    assert found.pool == ids[1] != ids[0]


def test_a_server_that_another_machine_made_after_the_plan_is_seen_on_its_host_and_taken_as_it_is(
    sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def elsewhere() -> None:
        with monkeypatch.context() as patch:
            patch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "other machine"))
            assert made(apply(sandbox, lambda: None))

    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "this machine"))
    outcome = apply(sandbox, elsewhere)
    assert made(outcome), endings(outcome)
