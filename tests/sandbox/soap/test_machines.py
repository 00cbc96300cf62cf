"""Machines over SOAP, pyVmomi as shipped as the client."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim


def test_a_created_machine_is_there_and_powers_on(client: Any) -> None:
    vm = client.vm("vm-a", memoryMB=8192, numCPUs=4)
    assert vm.name == "vm-a"
    client.run(vm.PowerOn())
    client.until(lambda: vm.guest.toolsRunningStatus == "guestToolsRunning")
    assert vm.summary.runtime.powerState == "poweredOn"
    with pytest.raises(vim.fault.InvalidPowerState):
        client.run(vm.PowerOn())
    client.run(vm.PowerOff())
    client.run(vm.Destroy())
    assert client.find("Singapore/vm/vm-a") is None
