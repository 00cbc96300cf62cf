"""Runs FlexDirect's own checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.app.context import LIVE, RunContext
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.kinds.machine.flexdirect_host.health import Examined


def health(site: Site, *, context: RunContext = LIVE) -> list[Examined]:
    """Return the output of `flexdirect health` on each machine of the site's flexdirect_hosts, run in
    parallel.
    """
    from bfinfra.backends.ansible import LinuxHosts
    from bfinfra.kinds.machine.flexdirect_host.health import examine

    hosts = LinuxHosts(transport := context.transport())
    try:
        return examine(site.resources, hosts)
    finally:
        hosts.close()
        transport.close()
