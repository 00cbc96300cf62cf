"""Checks of the ESXi hosts that resources name: their settings and time synchronisation."""

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
    """The setup of each named host that vCenter has. Missing hosts are left out; other checks report
    them.
    """
    wanted = set(names)
    if not wanted:
        return {}
    vcenter = context.entered()
    known = {host.name: host.moid for host in vcenter.inventory.read().hosts if host.name in wanted}
    found = vcenter.host_settings.setups(known.values())
    return {name: found[moid] for name, moid in known.items() if moid in found}


def time_kept(kind: str, hosts: Callable[[Specs], Iterable[str]]) -> Check:
    """A check that the hosts of a kind synchronise their time. `hosts`: the hosts that its specs name."""

    def clocks(context: CheckContext) -> Iterator[Finding]:
        """A finding per host: whether it synchronises its time by NTP."""
        for name, host in sorted(setups(context, hosts(context.of(kind))).items()):
            about = f"host {name}"
            if not host.ntp:
                yield warning(
                    about,
                    "no time servers are set",
                    "clocks drift apart, and then tokens and certificates are refused",
                    "set NTP servers under Configure, Time Configuration",
                )
            elif not host.ntp_runs:
                yield warning(
                    about,
                    "its NTP service does not run",
                    f"servers: {', '.join(host.ntp)}",
                    "start ntpd, and set it to start with the host",
                )
            else:
                yield good(about, f"keeps its time by {', '.join(host.ntp)}")

    return clocks
