"""What the doctor says of GPU hosts."""

from __future__ import annotations

from kinds.checking import BAD, checks_on, one
from pyVim.task import WaitForTask
from rights.given import administrator, paths

from bfinfra.kinds.vcenter.gpu_host.checks import connected


def test_a_host_that_vcenter_has_lost(sandbox):
    with administrator(sandbox) as si:
        WaitForTask(paths(si)["/dc/host/farm/esx1.small.test"].DisconnectHost_Task())
    with checks_on(sandbox, "gpu_host") as context:
        assert one(connected(context)) == (
            BAD,
            (
                "gpu_host/esx1.small.test: vCenter has no connection to it:  → check the host's state in "
                "vCenter"
            ),
        )
