"""The live state of a GPU host, and bfinfra's note on it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field, replace

from bfinfra.backends.vcenter.esxi import HostDetail, Lease, PciDevice, lost_host
from bfinfra.kinds.vcenter.base import begun
from bfinfra.kinds.vcenter.base.begun import Begun
from bfinfra.kinds.vcenter.base.machine.notes import IMPORTING, MARK, SECRETS
from bfinfra.model import resource
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

ATTRIBUTE = "bfinfra"
"""The custom attribute of a host that holds the note."""
BEGUN = f"{begun.ATTRIBUTE}gpu_host"
"""The custom attribute of a host that holds what the site began on it."""
VM_MARK = MARK
"""The extraConfig key of VMs' marks."""
VM_KEYS = (SECRETS, IMPORTING, "bfinfra.ova", "pciPassthru.use64bitMMIO", "pciPassthru.64bitMMIOSizeGB")
"""Further keys of VMs with GPUs, which the survey of hosts reads so that bitfusion_server needn't read those
VMs again.
"""


IN_EFFECT = "helped"
"""The note of a finished reboot of this site. If the run is killed before it notes what was applied, this
shows that reboots are allowed.
"""


@dataclass(frozen=True)
class GpuHostNote:
    """The note on a host, in one line: the mark, each device that bfinfra changed with its earlier setting,
    and the last reboot.

    `reboot`: "" none; `after:BOOT` finished without effect; IN_EFFECT finished with effect, until the mark is
    committed. `from:BOOT`: begun, as earlier releases noted it, and as it is where the account may not define
    an attribute for it (see `Begun`).
    """

    mark: Mark
    before: Mapping[str, bool] = field(default_factory=dict)
    reboot: str = ""

    def encode(self) -> str:
        """The note as one line of text."""
        before = ",".join(f"{address}={int(on)}" for address, on in sorted(self.before.items()))
        return (
            self.mark.encode()
            + (f" before={before}" if before else "")
            + (f" reboot={self.reboot}" if self.reboot else "")
        )

    @classmethod
    def decode(cls, text: str) -> GpuHostNote | None:
        """The note in a line of text, or None if it has no mark."""
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
    """The host as vCenter reports it, and the note on the host. `begun`: the maintenance mode that this site
    began and has not ended; `lease`: another run's lease of the host's cluster.
    """

    detail: HostDetail
    cluster: str
    note: GpuHostNote | None = None
    begun: Begun | None = None
    lease: Lease | None = None

    def last_known(self) -> str:
        """Return why its fields are last known values; "" while this site restarts it."""
        return "" if self.begun else lost_host(self.detail.name, self.detail.connection)

    def out_of_service(self, spec: resource.Spec | None) -> str:
        """Return that it is in maintenance mode, or restarts and isn't back."""
        if self.rebooting and not self.detail.connected:
            return f"restarts{' in maintenance mode' if self.detail.maintenance else ''}, and is not back"
        return "is in maintenance mode" if self.detail.maintenance else ""

    @property
    def before(self) -> Mapping[str, bool]:
        """The devices that bfinfra changed, with their earlier setting."""
        return self.note.before if self.note else {}

    @property
    def reboot(self) -> str:
        """The note about the last reboot."""
        return self.note.reboot if self.note else ""

    @property
    def rebooting(self) -> bool:
        """True if a reboot of this site was started, and the host is not yet out of its maintenance mode."""
        return self.begun is not None

    @property
    def has_restarted(self) -> bool:
        """True if the host has started since the site began to restart it."""
        return (
            self.begun is not None and self.detail.connected and self.detail.boot not in ("", self.begun.boot)
        )

    @property
    def rebooted_in_vain(self) -> bool:
        """True if the host was rebooted for the current setting, without effect."""
        return self.reboot == f"after:{self.detail.boot}"

    @property
    def after_reboot(self) -> State:
        """The expected state after the reboot that was started."""
        devices = tuple(replace(device, active=device.enabled) for device in self.detail.devices)
        return replace(
            self,
            detail=replace(self.detail, devices=devices),
            note=replace(self.note, reboot=IN_EFFECT) if self.note else None,
            begun=None,
        )

    def device(self, address: str) -> PciDevice | None:
        """The device at a PCI address, or None."""
        return self._devices.get(address)

    @functools.cached_property
    def _devices(self) -> Mapping[str, PciDevice]:
        return {device.address: device for device in reversed(self.detail.devices)}


@dataclass(frozen=True, slots=True)
class GpuHostFacts:
    """The names of all hosts, and of the VMs that the site describes. `clusters`: the id of each cluster by
    what the site calls it.
    """

    hosts: tuple[str, ...]
    machines: frozenset[str] = frozenset()
    clusters: Mapping[str, str] = field(default_factory=dict)


def read(detail: HostDetail, cluster: str, lease: Lease | None = None) -> State:
    """The state of a host in the cluster of that name. `lease`: another run's, of that cluster."""
    note = GpuHostNote.decode(detail.attributes.get(ATTRIBUTE, ""))
    found = Begun.decode(detail.attributes.get(BEGUN, ""))
    if note is not None and note.reboot.startswith("from:"):
        found = found or Begun.noted(note.mark, note.reboot)
        note = replace(note, reboot="")
    if found and note and found.mark.owner != note.mark.owner:
        found = None  # another resource's, which ends it
    return State(
        mark=note.mark if note else None, detail=detail, cluster=cluster, note=note, begun=found, lease=lease
    )
