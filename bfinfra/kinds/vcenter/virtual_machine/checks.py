"""Checks for what would stop an apply of virtual machines: how their hosts share graphics cards, and
synchronise their time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.vcenter.base.host_checks import setups, time_kept
from bfinfra.model.finding import Finding, bad, good

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext

DIRECT = "sharedDirect"


def graphics(context: CheckContext) -> Iterator[Finding]:
    """A finding per host of VMs with vGPUs: whether it shares its cards directly."""
    wanted = {spec.host for spec in context.of("virtual_machine").values() if spec.vgpus and spec.host}
    set_here = {
        host for spec in context.of("host_graphics").values() if spec.type == DIRECT for host in spec.hosts
    }
    for name, host in sorted(setups(context, wanted).items()):
        if host.graphics == DIRECT:
            yield good(f"host {name}", "its graphics type is Shared Direct")
        elif name in set_here:
            yield good(f"host {name}", "its graphics type becomes Shared Direct: the site sets it first")
        else:
            yield bad(
                f"host {name}",
                f"its graphics type is {host.graphics or 'unknown'}",
                "a VM with a vGPU does not start there",
                "set Shared Direct under Configure, Graphics, and restart the host or its X.Org service",
            )


CHECKS = {
    "hosts.clocks": time_kept(
        "virtual_machine", lambda specs: (spec.host for spec in specs.values() if spec.host)
    ),
    "hosts.graphics": graphics,
}
