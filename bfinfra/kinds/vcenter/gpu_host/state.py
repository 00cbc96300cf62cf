"""What vCenter says of a GPU host, and what bfinfra noted on it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field, replace

from bfinfra.backends.vcenter.esxi import HostDetail, PciDevice
from bfinfra.kinds.vcenter.base.machine_notes import IMPORTING, MARK, SECRETS
from bfinfra.model import resource
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

ATTRIBUTE = "bfinfra"
"""The custom attribute of a host that holds the note."""
VM_MARK = MARK
"""The extraConfig key of VMs' marks."""
VM_KEYS = (SECRETS, IMPORTING, "bfinfra.ova", "pciPassthru.use64bitMMIO", "pciPassthru.64bitMMIOSizeGB")
"""What else a survey of hosts reads of their GPUs' VMs, so that the servers' own needn't read those again."""


HELPED = "helped"
"""A reboot of ours that is over: should this run die before it says what was applied, it tells that reboots
are allowed.
"""


@dataclass(frozen=True)
class GpuHostNote:
    """What bfinfra writes on a host, in one line: the mark; each device it changed and how it was; a reboot
    of its own.

    `reboot`: "" none; `from:BOOT` begun (`:stay`: it was in maintenance mode before); `after:BOOT` did not
    help; HELPED until the note is committed.
    """

    mark: Mark
    before: Mapping[str, bool] = field(default_factory=dict)
    reboot: str = ""

    def encode(self) -> str:
        """The line."""
        before = ",".join(f"{address}={int(on)}" for address, on in sorted(self.before.items()))
        return (
            self.mark.encode()
            + (f" before={before}" if before else "")
            + (f" reboot={self.reboot}" if self.reboot else "")
        )

    @classmethod
    def decode(cls, text: str) -> GpuHostNote | None:
        """The note, or None where there is no mark."""
        mark = Mark.decode(text)
        words = dict(word.split("=", 1) for word in text.split() if word.startswith(("before=", "reboot=")))
        noted = dict(part.split("=", 1) for part in words.get("before", "").split(",") if "=" in part)
        return (
            cls(mark, {address: on == "1" for address, on in noted.items()}, words.get("reboot", ""))
            if mark
            else None
        )


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """What vCenter says, and the note on the host."""

    detail: HostDetail
    cluster: str
    note: GpuHostNote | None = None

    @property
    def before(self) -> Mapping[str, bool]:
        """The devices that bfinfra changed, and how they were."""
        return self.note.before if self.note else {}

    @property
    def reboot(self) -> str:
        """The note of a reboot."""
        return self.note.reboot if self.note else ""

    @property
    def rebooting(self) -> bool:
        """A reboot of ours was begun, and its maintenance mode isn't left yet."""
        return self.reboot.startswith("from:")

    @property
    def back(self) -> bool:
        """The host has started since the noted boot."""
        return (
            self.detail.connected
            and self.detail.boot != ""
            and self.reboot.removesuffix(":stay") != f"from:{self.detail.boot}"
        )

    @property
    def stays(self) -> bool:
        """It was in maintenance mode before our reboot, and stays there."""
        return self.reboot.endswith(":stay")

    @property
    def tried(self) -> bool:
        """It was rebooted for what is set now."""
        return self.reboot == f"after:{self.detail.boot}"

    @property
    def restarted(self) -> State:
        """As it will be once the reboot that was begun is over."""
        devices = tuple(replace(device, active=device.enabled) for device in self.detail.devices)
        return replace(
            self,
            detail=replace(self.detail, devices=devices),
            note=replace(self.note, reboot=HELPED) if self.note else None,
        )

    def device(self, address: str) -> PciDevice | None:
        """The device at an address."""
        return self._devices.get(address)

    @functools.cached_property
    def _devices(self) -> Mapping[str, PciDevice]:
        return {device.address: device for device in reversed(self.detail.devices)}


@dataclass(frozen=True, slots=True)
class GpuHostFacts:
    """The names of all hosts, and of the machines that the site describes."""

    hosts: tuple[str, ...]
    machines: frozenset[str] = frozenset()


def read(detail: HostDetail, cluster: str) -> State:
    """The state of a host in the cluster of that name."""
    note = GpuHostNote.decode(detail.attributes.get(ATTRIBUTE, ""))
    return State(mark=note.mark if note else None, detail=detail, cluster=cluster, note=note)
