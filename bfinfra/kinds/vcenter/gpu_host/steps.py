"""The steps of a GPU host."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.kinds.vcenter.base.begun import LEASE
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, holds
from bfinfra.model.step import Disruption, Step

NOTE = (holds("host", "Global.SetCustomField"), holds("definitions", "Global.ManageCustomFields"))
MAINTENANCE = (holds("rebooted", "Host.Config.Maintenance"), *LEASE)


@dataclass(frozen=True, kw_only=True)
class _OnHost(Step):
    name: str
    moid: str


@dataclass(frozen=True, kw_only=True)
class Set(_OnHost):
    """set passthrough on host {name}"""

    rights = (holds("host", "Host.Config.PciPassthru"), *NOTE)
    uses = (Use.APPLY, Use.DESTROY)

    wanted: Mapping[str, bool]
    note: str

    @property
    def devices(self) -> str:
        """The devices and their setting: `0000:3b:00.0 on, …`."""
        return ", ".join(f"{address} {'on' if on else 'off'}" for address, on in self.wanted.items())

    def title(self) -> str:
        """The title with the devices."""
        return f"set passthrough on host {self.name}: {self.devices}"


@dataclass(frozen=True, kw_only=True)
class ShutDown(_OnHost):
    """shut down {vm} on host {name}"""

    rights = ()  # the VM is a bitfusion_server of this site; that kind declares the privileges to stop it
    disruption = Disruption.POWER_CYCLE
    why = "its GPU can't move to another host while this one reboots"
    vm: str
    vm_moid: str


@dataclass(frozen=True, kw_only=True)
class _InMaintenance(_OnHost):
    rights = (*MAINTENANCE, *NOTE)
    uses = (Use.APPLY, Use.DESTROY)

    cluster: str
    """The id of its cluster, whose lease it takes."""


@dataclass(frozen=True, kw_only=True)
class Reboot(_InMaintenance):
    """reboot host {name} through maintenance mode"""

    disruption = Disruption.REBOOT
    why = "passthrough takes effect with the next start of the host"
    preapproved = True
    waits_ready = True
    boot: str
    maintenance: bool
    """Whether the host is in maintenance mode already."""
    begun: str
    """What is noted before it begins."""
    note: str
    """The note of a host that has none; "" for others."""
    instead: str
    """The note that says the same, for an account that may not define an attribute of its own for it."""


@dataclass(frozen=True, kw_only=True)
class Await(_OnHost):
    """wait until host {name} is back from the reboot that was started"""

    rights = ()
    uses = (Use.APPLY, Use.DESTROY)
    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Leave(_InMaintenance):
    """take host {name} out of maintenance mode"""

    note: str
    """The note about the reboot; "" where it stays as it is."""
    stay: bool

    def title(self) -> str:
        """The title; without "maintenance mode" if the host was in it before and stays there."""
        return (
            f"note that host {self.name} was rebooted"
            if self.stay
            else f"take host {self.name} out of maintenance mode"
        )


@dataclass(frozen=True, kw_only=True)
class Commit(_OnHost):
    """note on host {name} what was applied"""

    rights = NOTE

    note: str


@dataclass(frozen=True, kw_only=True)
class Forget(_OnHost):
    """take bfinfra's notes off host {name}{owed}"""

    rights = NOTE
    uses = (Use.DESTROY,)

    owed: str = ""
