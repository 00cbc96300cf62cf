"""Clusters: how DRS is set up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed


@method("vim.ComputeResource", "ReconfigureComputeResource_Task")
def reconfigure(call: Call, this: Managed, args: Any) -> vim.Task:
    """DRS's advanced options, one by one; an empty value takes one away. NotSupported for all else."""
    drs = getattr(args.spec, "drsConfig", None)
    if drs is None or not args.modify:
        raise vmodl.fault.NotSupported(msg="The sandbox changes options of DRS alone.")
    return tasks.start(
        call, this, "ComputeResource.reconfigureEx", lambda: _set(call, this, drs.option or ())
    )


def _set(call: Call, cluster: Managed, options: Any) -> None:
    for config in (cluster["configurationEx"].drsConfig, cluster["configuration"].drsConfig):
        found = {each.key: str(each.value) for each in config.option or ()}
        found |= {each.key: str(each.value) for each in options}
        config.option = [
            vim.option.OptionValue(key=key, value=value) for key, value in found.items() if value
        ]
    call.inventory.touch(cluster)
