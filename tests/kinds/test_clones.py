"""A clone that somebody made of a server has its mark: it is never taken for the server, whether that one
still stands or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from kinds.test_unmanaged import forced, without
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

SERVER = Key("bitfusion_server", "bf-01")
EXAMPLE = EXAMPLES["bitfusion_server"]
BOTH = pytest.mark.parametrize("gone", [False, True], ids=["the original stands", "the original is gone"])


class Machines:
    """The VMs as pyVmomi has them."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def named(self, name: str) -> Any:
        view = self._content.viewManager.CreateContainerView(
            self._content.rootFolder, [vim.VirtualMachine], True
        )
        return next((vm for vm in view.view if vm.name == name), None)

    def clone(self, name: str = "bf-01-copy") -> Any:
        vm = self.named("bf-01")
        WaitForTask(
            vm.CloneVM_Task(
                vm.parent,
                name,
                vim.vm.CloneSpec(location=vim.vm.RelocateSpec(), powerOn=False, template=False),
            )
        )
        return self.named(name)

    def remove(self, name: str = "bf-01") -> None:
        vm = self.named(name)
        if vm.runtime.powerState == "poweredOn":
            WaitForTask(vm.PowerOffVM_Task())
        WaitForTask(vm.Destroy_Task())

    def options(self, name: str, **values: str) -> None:
        options = [
            vim.option.OptionValue(key=key.replace("_", "."), value=value) for key, value in values.items()
        ]
        WaitForTask(self.named(name).ReconfigVM_Task(vim.vm.ConfigSpec(extraConfig=options)))

    def mark(self, name: str = "bf-01") -> str:
        return next(
            str(option.value)
            for option in self.named(name).config.extraConfig
            if option.key == "bfinfra.mark"
        )


def look(vm: Any) -> tuple[Any, ...]:
    """All that could be changed of it."""
    config = vm.config
    return (
        vm.name,
        config.instanceUuid,
        config.changeVersion,
        vm.runtime.powerState,
        {o.key: o.value for o in config.extraConfig},
        len(config.hardware.device),
    )


def unmarked(seen: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same without mark and version."""
    name, uuid, _, power, options, devices = seen
    return name, uuid, power, {key: value for key, value in options.items() if key != MARK}, devices


@pytest.fixture
def machines(sandbox: Running) -> Iterator[Machines]:
    assert made(apply(EXAMPLE, sandbox))
    with administrator(sandbox) as si:
        yield Machines(si.content)


def pruned(folder: Path) -> Path:
    """The example without its server."""
    (folder / "site.yaml").write_text(EXAMPLE.read_text())
    return without(folder / "site.yaml", "bitfusion_server")


def test_a_server_has_in_its_mark_the_instance_uuid_that_it_was_made_with(machines: Machines) -> None:
    vm = machines.named("bf-01")
    assert Mark.decode(machines.mark()).id == vm.config.instanceUuid
    assert machines.clone().config.instanceUuid != vm.config.instanceUuid


@BOTH
@pytest.mark.parametrize("how", ["destroy", "prune"])
def test_what_removes_a_server_leaves_its_clone(
    how: str, gone: bool, machines: Machines, sandbox: Running, tmp_path: Path
) -> None:
    copy = machines.clone()
    before = look(copy)
    if gone:
        machines.remove()
    ended = forced(EXAMPLE, sandbox, destroy=True) if how == "destroy" else forced(pruned(tmp_path), sandbox)
    missed = {at: text for at, text in ended.items() if text.startswith("failed")}
    assert "refused" not in ended
    if gone and how == "destroy":  # by somebody else, so that it may also be out of sight
        assert missed.keys() == {"bitfusion_server/bf-01"}
        assert "bfinfra state forget" in missed["bitfusion_server/bf-01"]
    else:
        assert missed == {}
    assert look(copy) == before
    assert machines.named("bf-01") is None


def test_beside_its_clone_a_server_is_kept_and_changed_as_ever(machines: Machines, sandbox: Running) -> None:
    copy = machines.clone("aa-copy")
    before = look(copy)
    assert plan(EXAMPLE, sandbox).pending == ()
    WaitForTask(machines.named("bf-01").PowerOffVM_Task())
    assert made(apply(EXAMPLE, sandbox))
    assert machines.named("bf-01").runtime.powerState == "poweredOn"
    assert look(copy) == before


@pytest.mark.parametrize("name", ["bf-01-copy", "bf-01"])
def test_where_the_original_is_gone_the_plan_says_of_what_it_is_a_copy_and_it_may_be_adopted(
    name: str, machines: Machines, sandbox: Running
) -> None:
    copy = machines.clone()
    machines.remove()
    WaitForTask(copy.Rename_Task(name))
    before = look(copy)
    ended = forced(EXAMPLE, sandbox)
    assert f"the VM {name} is a copy of bitfusion_server/bf-01 of the site example" in ended["refused"]
    assert "bfinfra adopt SITE bitfusion_server/bf-01" in ended["refused"]
    assert look(copy) == before
    outcome = apply(EXAMPLE, sandbox, adopt=frozenset({SERVER}))
    assert made(outcome), endings(outcome)
    assert Mark.decode(machines.mark(name)).id == copy.config.instanceUuid
    assert unmarked(look(copy)) == unmarked(before)
    assert made(apply(EXAMPLE, sandbox))
    assert plan(EXAMPLE, sandbox).pending == ()
    assert made(apply(EXAMPLE, sandbox, destroy=True))
    assert machines.named(name) is None


def test_a_clone_without_its_mark_is_in_nobodys_way(machines: Machines, sandbox: Running) -> None:
    copy = machines.clone()
    machines.remove()
    machines.options("bf-01-copy", bfinfra_mark="")
    assert made(apply(EXAMPLE, sandbox))
    assert machines.named("bf-01") is not None
    assert copy.name == "bf-01-copy"


def test_a_mark_of_before_without_an_id_goes_on_as_it_is(machines: Machines, sandbox: Running) -> None:
    """Of two such, the one is meant that was made for it, and the other doesn't follow it in the same run."""
    machines.options("bf-01", bfinfra_mark=machines.mark().partition(" id=")[0])
    assert plan(EXAMPLE, sandbox).pending == ()
    copy = machines.clone("aa-copy")
    before = look(copy)
    assert plan(EXAMPLE, sandbox).pending == ()
    assert made(apply(EXAMPLE, sandbox, destroy=True))
    assert machines.named("bf-01") is None
    assert look(copy) == before


def test_a_card_that_a_clone_holds_is_in_use_by_a_stranger(
    machines: Machines, sandbox: Running, tmp_path: Path
) -> None:
    """So the host isn't rebooted under it, whatever is allowed."""
    copy = machines.clone()
    card = next(
        d
        for d in machines.named("bf-01").config.hardware.device
        if isinstance(d, vim.vm.device.VirtualPCIPassthrough)
    )
    machines.remove()
    backing = vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=card.backing.id,
        deviceId=card.backing.deviceId,
        systemId=card.backing.systemId,
        vendorId=card.backing.vendorId,
        deviceName=card.backing.deviceName,
    )
    add = vim.vm.device.VirtualDeviceSpec(
        operation="add", device=vim.vm.device.VirtualPCIPassthrough(key=-1, backing=backing)
    )
    WaitForTask(
        copy.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[add], memoryReservationLockedToMax=True))
    )
    WaitForTask(copy.PowerOnVM_Task())
    before = look(copy)
    (tmp_path / "site.yaml").write_text(EXAMPLE.read_text())
    given = yaml.load((tmp_path / "site.yaml").read_text(), yaml.BaseLoader)
    given.pop("bitfusion_server")
    given["gpu_host"]["esx1.small.test"] |= {"reboot_in_use": "true"}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
    for how in ({}, {"destroy": True}):
        assert "copy" in str(forced(tmp_path / "site.yaml", sandbox, **how))
        assert look(copy) == before
