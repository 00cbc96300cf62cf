"""What vCenter says of a GPU host, and what bfinfra noted on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bfinfra.backends.vcenter.hosts import HostDetail, PciDevice
from bfinfra.model import kind
from bfinfra.model.mark import Mark

MARK, BEFORE, REBOOT = "bfinfra.mark", "bfinfra.before", "bfinfra.reboot"
"""Custom attributes of a host: the mark; each device we changed and how it was; the boot before, then after, a reboot of ours."""


@dataclass(frozen=True, kw_only=True)
class State(kind.State):
    """What vCenter says. `before`: the devices that bfinfra changed, and how they were; `reboot`: the note of a reboot."""

    detail: HostDetail
    cluster: str
    before: Mapping[str, bool] = field(default_factory=dict)
    reboot: str = ""

    @property
    def rebooting(self) -> bool:
        """A reboot of ours was begun, and its maintenance mode isn't left yet."""
        return self.reboot.startswith("from ")

    @property
    def back(self) -> bool:
        """The host has started since the noted boot."""
        return self.detail.connected and self.reboot.split()[1:2] != [self.detail.boot]

    @property
    def stays(self) -> bool:
        """It was in maintenance mode before our reboot, and stays there."""
        return self.reboot.endswith(" stay")

    @property
    def tried(self) -> bool:
        """It was rebooted for what is set now."""
        return self.reboot == f"after {self.detail.boot}"

    def device(self, address: str) -> PciDevice | None:
        """The device at an address."""
        return next((d for d in self.detail.devices if d.address == address), None)


@dataclass(frozen=True, slots=True)
class Facts:
    """The names of all hosts."""

    hosts: tuple[str, ...]


def read(detail: HostDetail, cluster: str) -> State:
    """The state of a host in the cluster of that name."""
    noted = dict(part.split("=", 1) for part in detail.attributes.get(BEFORE, "").split() if "=" in part)
    return State(
        mark=Mark.decode(detail.attributes.get(MARK)),
        detail=detail,
        cluster=cluster,
        before={address: value == "1" for address, value in noted.items()},
        reboot=detail.attributes.get(REBOOT, ""),
    )


def note(before: Mapping[str, bool]) -> str:
    """`before` as a custom attribute holds it: `0000:3b:00.0=0 …`."""
    return " ".join(f"{address}={int(on)}" for address, on in sorted(before.items()))
