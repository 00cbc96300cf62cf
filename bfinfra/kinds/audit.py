"""Who moved what, for drift reports: machines by vCenter's events, objects of Kubernetes by their
managedFields.
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
FEW = 20  # machines that are asked about in one check, a request each
WAYS = {"": "powered", "power": "powered", "host": "moved", "datastore": "moved"}
"""What a field of a machine is moved by, where that is no reconfiguration; a machine that only has to be
started again has no field that differs.
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
"""What a reconfiguration of a field names."""


def of_machines(events: Events, asked: Asked, moid: Callable[[Any], str]) -> Writers:
    """By name and field; of those that are gone, who removed them."""
    writers: Writers = {}
    gone = events.removed() if any(state is None for state, _ in asked.values()) else []
    standing = [name for name, (state, _) in asked.items() if state is not None][:FEW]
    for name, (state, fields) in asked.items():
        if state is None:
            found = next((each for each in gone if each.name == name), None)
            writers[name] = {"": trace(found)} if found else {}
        elif name in standing:
            happened = events.of(moid(state))
            writers[name] = {field: trace(found) for field in fields if (found := _who(happened, field))}
    return writers


def _who(happened: Iterable[Happened], field: str) -> Happened | None:
    """The newest that may have moved a field; of reconfigurations rather one that names it."""
    first = field.partition(".")[0]
    fit = [each for each in happened if each.what == WAYS.get(first, "reconfigured")]
    if first not in PARTS or not any(each.set for each in fit):
        return fit[0] if fit else None
    return next((each for each in fit if each.set & PARTS[first]), None)


def of_field(obj: Mapping[str, Any] | None, *path: str) -> LastWriter | None:
    """Who else wrote a field of an object last."""
    found = writer(obj, path) if obj else None
    return LastWriter(*found) if found else None


def trace(found: Happened) -> LastWriter:
    """As a report tells it."""
    return LastWriter(found.by, found.at)
