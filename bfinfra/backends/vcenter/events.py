"""Finds who last changed a machine, in vCenter's events: for a few machines only, with one request each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.words import safe
from bfinfra.model.records import dataclass

MOST = 1000  # events in an answer; vCenter gives no more
RECONFIGURED, POWERED, MOVED, REMOVED = "reconfigured", "powered", "moved", "removed"
KINDS: dict[str, tuple[type[Any], ...]] = {
    RECONFIGURED: (vim.event.VmReconfiguredEvent,),
    POWERED: (vim.event.VmPoweredOnEvent, vim.event.VmPoweredOffEvent, vim.event.VmSuspendedEvent),
    MOVED: (vim.event.VmMigratedEvent, vim.event.VmRelocatedEvent),
    REMOVED: (vim.event.VmRemovedEvent,),
}


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a machine. `by`: the user as vCenter names it, or ""; `at`: seconds since the epoch; `set`:
    the settings that a reconfiguration names.
    """

    what: str
    moid: str
    name: str
    by: str
    at: float
    set: frozenset[str] = frozenset()


class Events:
    """The events of one vCenter."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def of(self, moid: str) -> list[Happened]:
        """A machine's events, newest first."""

        def read(content: Any) -> list[Happened]:
            entity = vim.event.EventFilterSpec.ByEntity(
                entity=refs.refer(content, vim.VirtualMachine, moid), recursion="self"
            )
            return _sorted(
                content.eventManager.QueryEvents(
                    vim.event.EventFilterSpec(entity=entity, maxCount=MOST, disableFullMessage=True)
                )
            )

        return self._session.read(read)

    def removed(self) -> list[Happened]:
        """The deleted machines, newest first."""

        def read(content: Any) -> list[Happened]:
            return _sorted(
                content.eventManager.QueryEvents(
                    vim.event.EventFilterSpec(
                        eventTypeId=["vim.event.VmRemovedEvent", "VmRemovedEvent"],
                        maxCount=MOST,
                        disableFullMessage=True,
                    )
                )
            )

        return [each for each in self._session.read(read) if each.what == REMOVED]


def _sorted(events: Iterable[object]) -> list[Happened]:
    found = [made for event in events or () if (made := _read(event)) is not None]
    return sorted(found, key=lambda each: each.at, reverse=True)


def _read(event: Any) -> Happened | None:
    """The event; None if it changes nothing, or is about no machine."""
    what = next((what for what, types in KINDS.items() if isinstance(event, types)), None)
    if what is None or event.vm is None:
        return None
    named = _named(getattr(event, "configSpec", None)) if what == RECONFIGURED else frozenset()
    return Happened(
        what,
        refs.moid(event.vm.vm),
        safe(event.vm.name or ""),
        safe(event.userName or "").strip(),
        event.createdTime.timestamp(),
        named,
    )


def _named(spec: Any) -> frozenset[str]:
    """The parts of a machine that a reconfiguration names, without their values."""
    return (
        frozenset()
        if spec is None
        else frozenset(
            info.name
            for info in spec._GetPropertyList()  # noqa: SLF001 - pyVmomi's public accessor
            if getattr(spec, info.name) not in (None, [], "")
        )
    )
