"""Checks for what would stop an apply of GPU hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.vcenter.base.host_checks import time_kept
from bfinfra.model.finding import Finding, bad, good, warning
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext


def connected(context: CheckContext) -> Iterator[Finding]:
    """A finding per GPU host: whether vCenter has it and is connected to it."""
    known = {host.name: host for host in context.entered().inventory.read().hosts}
    for key in context.of("gpu_host"):
        host = known.get(key.name)
        if host is None:
            yield bad(key, "vCenter knows no such host", next=nearest(key.name, known))
        elif not host.connected:
            yield bad(key, "vCenter has no connection to it", next="check the host's state in vCenter")
        elif host.maintenance:
            yield warning(
                key,
                "it is in maintenance mode",
                "no server can be started on it",
                "take it out when the work there is done",
            )
        else:
            yield good(key, "is connected")


CHECKS = {
    "vcenter.hosts": connected,
    "hosts.clocks": time_kept("gpu_host", lambda specs: (key.name for key in specs)),
}
