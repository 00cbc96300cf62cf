"""Checks of ESXi hosts that resources name: how they are set up, and whether they keep their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.server_checks import Check
from bfinfra.model.finding import Finding, good, warning
from bfinfra.model.order import Specs

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.esxi_settings import HostSetup
    from bfinfra.kinds.checks import CheckContext


def setups(context: CheckContext, names: Iterable[str]) -> dict[str, HostSetup]:
    """Those that vCenter knows: that one is missing, others tell."""
    wanted = set(names)
    if not wanted:
        return {}
    vcenter = context.entered()
    known = {host.name: host.moid for host in vcenter.inventory.read().hosts if host.name in wanted}
    found = vcenter.host_settings.setups(known.values())
    return {name: found[moid] for name, moid in known.items() if moid in found}


def time_kept(kind: str, hosts: Callable[[Specs], Iterable[str]]) -> Check:
    """The check of the hosts of a kind. `hosts`: which ones its specs name."""

    def clocks(context: CheckContext) -> Iterator[Finding]:
        """Hosts keep their time by NTP."""
        for name, host in sorted(setups(context, hosts(context.of(kind))).items()):
            about = f"host {name}"
            if not host.ntp:
                yield warning(
                    about,
                    "no time servers are set",
                    "clocks drift apart, and tokens and certificates with them",
                    "set NTP servers under Configure, Time Configuration",
                )
            elif not host.ntp_runs:
                yield warning(
                    about,
                    "its NTP service does not run",
                    f"servers: {', '.join(host.ntp)}",
                    "start ntpd, and let it start with the host",
                )
            else:
                yield good(about, f"keeps its time by {', '.join(host.ntp)}")

    return clocks
