"""How the tests of printed rights change it."""

from __future__ import annotations

from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, paths
from rights.life import Life
from rights.others import interrupt_import

from bfinfra.model.rights import Use
from bfinfra.sandbox import Running


def folder_and_pool(sandbox: Running, use: Use) -> None:
    """Somebody creates the folder and the resource pool that the changes name."""
    if use is Use.DESTROY:
        return
    part = vim.ResourceAllocationInfo(
        reservation=0,
        limit=-1,
        expandableReservation=True,
        shares=vim.SharesInfo(level="normal", shares=4000),
    )
    with administrator(sandbox) as si:
        there = paths(si)
        there["/dc/vm"].CreateFolder("gpu")
        there["/dc/host/farm/Resources"].CreateResourcePool(
            "servers", vim.ResourceConfigSpec(cpuAllocation=part, memoryAllocation=part)
        )


def take_back_hardware(sandbox: Running) -> None:
    """Somebody removes the settings that passthrough needs."""
    with administrator(sandbox) as si:
        vm = paths(si)["/dc/vm/bf-01"]
        WaitForTask(vm.PowerOff())
        WaitForTask(vm.Reconfigure(vim.vm.ConfigSpec(firmware="bios", memoryReservationLockedToMax=False)))


def move(sandbox: Running) -> None:
    """Somebody moves the VM to another folder."""
    with administrator(sandbox) as si:
        there = paths(si)
        WaitForTask(there["/dc/vm/gpu"].MoveInto([there["/dc/vm/bf-01"]]))


SIZES = ("gpus: 1", "gpus: 1\n    cpus: 6\n    memory: 40GiB\n    disk: 60GiB\n    resource_pool: servers")
SECOND_ADAPTER = ("10.2.0.1}", "10.2.0.1}\n      Network 2: {network: VM Network}")
PROPERTY = ("bf-01.small.test", "bf-02.small.test")
LIFE = Life(
    prepare=folder_and_pool,
    changes=(
        SIZES,
        ("{network: VM Network, address", "{network: Storage Network, address"),
        SECOND_ADAPTER,
        PROPERTY,
    ),
    drifts=(take_back_hardware, move, interrupt_import),
)
VARIANTS = {
    "bitfusion_server on a port group of its own": Life(
        example=(
            (
                "site: example\n",
                (
                    "site: example\ndistributed_switch:\n  d: {hosts: {esx1.small.test: [vmnic1]}}\n"
                    "port_group:\n  management: {switch: d, vlan: 31}\n"
                ),
            ),
            ("network: VM Network", "network: management"),
        ),
        prepare=folder_and_pool,
        changes=(
            ("{hosts:", "{mtu: 9000, hosts:"),
            ("vlan: 31", "vlan: 32"),
            SIZES,
            SECOND_ADAPTER,
            ("{network: management, address", "{network: Storage Network, address"),
            PROPERTY,
        ),
        drifts=LIFE.drifts,
    )
}
