"""Finds who changed something, for drift reports: for VMs in vCenter's events, for Kubernetes objects in
their managedFields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.owned import writer
from bfinfra.model.kind import LastWriter

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.events import Events, Happened

Asked = Mapping[str, tuple[Any, tuple[str, ...]]]
Writers = dict[str, dict[str, LastWriter]]
FEW = 20  # the most VMs to ask about in one check, as each takes a request
WAYS = {"": "powered", "power": "powered", "host": "moved", "datastore": "moved"}
"""Field of a VM → the events that change it, for fields that don't change by a reconfiguration. A VM that was
only switched off has no field that differs.
"""
PARTS = {
    "cpus": {"numCPUs"},
    "memory": {"memoryMB"},
    "firmware": {"firmware"},
    "reservation": {"memoryReservationLockedToMax", "memoryAllocation"},
    "gpus": {"deviceChange"},
    "networks": {"deviceChange"},
    "adapters": {"deviceChange"},
    "disk": {"deviceChange"},
    "disks": {"deviceChange"},
    "mmio": {"extraConfig"},
    "extra": {"extraConfig"},
    "settings": {"extraConfig"},
    "properties": {"vAppConfig"},
}
"""Field → the words for it in the text of a reconfiguration event."""


def of_machines(events: Events, asked: Asked, moid: Callable[[Any], str]) -> Writers:
    """The last writer by name and field; for VMs that are gone, who removed them."""
    writers: Writers = {}
    gone = events.removed() if any(state is None for state, _ in asked.values()) else []
    existing = [name for name, (state, _) in asked.items() if state is not None][:FEW]
    for name, (state, fields) in asked.items():
        if state is None:
            found = next((each for each in gone if each.name == name), None)
            writers[name] = {"": last_writer(found)} if found else {}
        elif name in existing:
            happened = events.of(moid(state))
            writers[name] = {
                field: last_writer(found) for field in fields if (found := _who(happened, field))
            }
    return writers


def _who(happened: Iterable[Happened], field: str) -> Happened | None:
    """The newest event that may have changed a field. Prefers reconfigurations that name the field."""
    first = field.partition(".")[0]
    fit = [each for each in happened if each.what == WAYS.get(first, "reconfigured")]
    if first not in PARTS or not any(each.set for each in fit):
        return fit[0] if fit else None
    return next((each for each in fit if each.set & PARTS[first]), None)


def of_field(obj: Mapping[str, object] | None, *path: str) -> LastWriter | None:
    """The last other writer of a field of an object."""
    found = writer(obj, path) if obj else None
    return LastWriter(*found) if found else None


def last_writer(found: Happened) -> LastWriter:
    """The last writer as a report shows it."""
    return LastWriter(found.by, found.at)
