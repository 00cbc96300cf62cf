"""EventManager: events with their users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import UNSTABLE, computed
from bfinfra.sandbox.inventory.vmtypes import moid, support, vim
from bfinfra.sandbox.soap.collector import own
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.journal import ARGUMENTS, has, record
from bfinfra.sandbox.soap.views import descendants

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER, COLLECTOR = "vim.event.EventManager", "vim.event.EventHistoryCollector"
DETAILS = [
    vim.event.EventDescription.EventDetail(
        key=getattr(vim.event, each),
        description=each,
        category="user" if "Session" in each else "info",
        formatOnDatacenter="",
        formatOnComputeResource="",
        formatOnHost="",
        formatOnVm="",
        fullFormat="",
    )
    for each in (
        "VmCreatedEvent",
        "VmBeingDeployedEvent",
        "VmDeployedEvent",
        "VmReconfiguredEvent",
        "VmPoweredOnEvent",
        "VmPoweredOffEvent",
        "VmMigratedEvent",
        "VmRelocatedEvent",
        "VmRemovedEvent",
        "EventEx",
        "EnteredMaintenanceModeEvent",
        "ExitMaintenanceModeEvent",
        "HostConnectionLostEvent",
        "UserLoginSessionEvent",
        "BadUsernameSessionEvent",
        "GeneralUserEvent",
    )
]
UNSTABLE.update({"latestEvent", "latestPage"})


@method(MANAGER, "QueryEvents", writes=False)
def query(call: Call, _: Managed, args: Any) -> Any:
    """The events that match, oldest first."""
    return matching(call, args.filter)


def matching(call: Call, wanted: Any) -> list[Any]:
    """Events by entity, time, user and type."""
    entities = entity_ids(call.inventory, wanted.entity) if wanted.entity else None
    users = {each.lower() for each in wanted.userName.userList} if wanted.userName else None
    types = {
        *(wanted.eventTypeId or []),
        *((wanted.type and [support.GetWsdlName(each) for each in wanted.type]) or []),
    }
    begin, end = (wanted.time.beginTime, wanted.time.endTime) if wanted.time else (None, None)
    found = [
        event
        for event in call.inventory.events
        if (entities is None or concerned(event) & entities)
        and (users is None or event.userName.lower() in users)
        and (not types or type_ids(event) & types)
        and (begin is None or event.createdTime >= begin)
        and (end is None or event.createdTime <= end)
    ]
    return found[-wanted.maxCount :] if wanted.maxCount else found


def type_ids(event: object) -> set[str]:
    """The names by which an event's type can be asked for."""
    kind = support.GetWsdlName(type(event))
    return {kind, f"vim.event.{kind}", getattr(event, "eventTypeId", kind)}


def entity_ids(inventory: Inventory, wanted: Any) -> set[str]:
    """Ids of the entity, of its children or of all below it."""
    start = inventory.get(wanted.entity)
    below = descendants(inventory, start) if wanted.recursion != "self" else []
    return {*(each.moid for each in below), *([] if wanted.recursion == "children" else [start.moid])}


def concerned(event: object) -> set[str]:
    """Ids of the entities that an event names."""
    return {
        moid(getattr(getattr(event, name), reference))
        for _, name, _, reference in ARGUMENTS
        if has(event, name) and getattr(event, name) is not None
    }


@method(MANAGER, "CreateCollectorForEvents", writes=False)
def collector(call: Call, _: Managed, args: Any) -> Any:
    """A collector over the events that match; it reads from the newest."""
    return own(call, vim.event.EventHistoryCollector, filter=args.filter).ref


@computed(COLLECTOR, "latestPage")
def _latest_page(inventory: Inventory, this: Managed) -> Any:
    call = Call(inventory, None, None, "", "")  # type: ignore[arg-type]  # reading events takes no session
    return list(reversed(matching(call, this["filter"])))[:1000]


@method(COLLECTOR, "ReadNextEvents", writes=False)
def read_next(call: Call, this: Managed, args: Any) -> Any:
    """The next events, oldest first."""
    at = this.hidden.get("at", 0)
    found = matching(call, this["filter"])[at : at + args.maxCount]
    this.hidden["at"] = at + len(found)
    return found


@method(COLLECTOR, "ReadPreviousEvents", writes=False)
def read_previous(call: Call, this: Managed, args: Any) -> Any:
    """The events before."""
    end = this.hidden.get("at", 0)
    begin = max(0, end - args.maxCount)
    this.hidden["at"] = begin
    return matching(call, this["filter"])[begin:end]


@method("vim.HistoryCollector", "RewindCollector", writes=False)
def rewind(_: Call, this: Managed, __: object) -> None:
    """To the oldest."""
    this.hidden["at"] = 0


@method("vim.HistoryCollector", "ResetCollector", writes=False)
def to_newest(call: Call, this: Managed, _: object) -> None:
    """To the newest."""
    this.hidden["at"] = len(matching(call, this["filter"]))


@method("vim.HistoryCollector", "SetCollectorPageSize", writes=False)
def page_size(_: Call, this: Managed, args: Any) -> None:
    """Set the number of events in `latestPage`."""
    this.hidden["page"] = args.maxCount


@method("vim.HistoryCollector", "DestroyCollector", writes=False)
def destroy(call: Call, this: Managed, _: object) -> None:
    """Forget the collector."""
    call.inventory.remove(this)


@computed(MANAGER, "latestEvent")
def _latest(inventory: Inventory, _: Managed) -> Any:
    return inventory.events[-1] if inventory.events else None


@computed(MANAGER, "maxCollector")
def _limit(_: Inventory, __: Managed) -> int:
    return 32


@computed(MANAGER, "description")
def _description(_: Inventory, __: Managed) -> Any:
    return vim.event.EventDescription(
        category=[
            vim.ElementDescription(key=each, label=each, summary=each)
            for each in ("info", "warning", "error", "user")
        ],
        eventInfo=DETAILS,
    )


@method(MANAGER, "LogUserEvent")
def log_user_event(call: Call, _: Managed, args: Any) -> None:
    """A caller's own words."""
    record(call, vim.event.GeneralUserEvent, call.inventory.get(args.entity), args.msg, message=args.msg)
