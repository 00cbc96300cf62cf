"""Waiting for changes: filters, WaitForUpdatesEx, CancelWaitForUpdates."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import moid, vim, vmodl
from bfinfra.sandbox.soap.collector import COLLECTOR, own
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.properties import escaped, prop_set
from bfinfra.sandbox.soap.selection import select

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

LONGEST = 1800.0
LOOK = 5.0  # seconds between two checks whether a waiter's session is still open


@dataclass
class Seen:
    """The values that a filter has sent to its client: the text of each path, by object."""

    objects: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)  # id → type, path → propSet


@dataclass
class Waiter:
    """A collector's state for one session: the last version sent, and what each filter has sent."""

    version: int = 0
    at: int = -1
    cancelled: bool = False
    seen: dict[str, Seen] = field(default_factory=dict)


def waiter(call: Call, this: Managed) -> Waiter:
    """The waiter of the caller's session at this collector."""
    if call.session is None:
        raise vim.fault.NotAuthenticated(
            object=this.ref, privilegeId="System.View", msg="The session is not authenticated."
        )
    found: Waiter = call.session.held.setdefault(f"waiter {this.moid}", Waiter())
    return found


@method(COLLECTOR, "CreateFilter", writes=False)
def create_filter(call: Call, this: Managed, args: Any) -> Any:
    """Create a filter. An invalid specification raises its fault now, and not in the wait."""
    select(call, args.spec)
    made = own(call, vmodl.query.PropertyCollector.Filter, spec=args.spec, partialUpdates=args.partialUpdates)
    made.hidden["collector"] = this.moid
    this["filter"] = [*this["filter"], made.ref]
    waiter(call, this).at = -1
    return made.ref


@method("vmodl.query.PropertyCollector.Filter", "DestroyPropertyFilter", writes=False)
def destroy_filter(call: Call, this: Managed, _: Any) -> None:
    """Forget the filter."""
    collector = call.inventory.objects.get(this.hidden["collector"])
    if collector is not None:
        collector["filter"] = [ref for ref in collector["filter"] if ref != this.ref]
        waiter(call, collector).seen.pop(this.moid, None)
    call.inventory.remove(this)


@method(COLLECTOR, "CancelWaitForUpdates", writes=False)
def cancel(call: Call, this: Managed, _: Any) -> None:
    """End the caller's wait with RequestCanceled."""
    waiter(call, this).cancelled = True
    call.inventory.touch(this)


@method(COLLECTOR, "WaitForUpdatesEx", writes=False, locked=False, raw=True)
def wait_ex(call: Call, this: Managed, args: Any) -> str:
    """The changes since a version. Waits for them up to `maxWaitSeconds`; "" if there are none."""
    limit = (
        args.options.maxWaitSeconds if args.options and args.options.maxWaitSeconds is not None else LONGEST
    )
    return wait(call, this, args.version, limit)


@method(COLLECTOR, "WaitForUpdates", writes=False, locked=False, raw=True)
def wait_long(call: Call, this: Managed, args: Any) -> str:
    """The older call, which waits without an end."""
    return wait(call, this, args.version, LONGEST)


@method(COLLECTOR, "CheckForUpdates", writes=False, locked=False, raw=True)
def check(call: Call, this: Managed, args: Any) -> str:
    """The older call, which doesn't wait."""
    return wait(call, this, args.version, 0)


def wait(call: Call, this: Managed, version: str | None, limit: float) -> str:
    """Look for changes now, and again after each change of the inventory."""
    deadline, inventory = time.monotonic() + limit, call.inventory
    with inventory.lock:
        mine = waiter(call, this)
        start(mine, version)
        while True:
            if mine.cancelled:
                mine.cancelled = False
                raise vmodl.fault.RequestCanceled(msg="The wait was cancelled.")
            if this.moid not in inventory.objects:
                raise vmodl.fault.ManagedObjectNotFound(obj=this.ref)
            if mine.at != inventory.version:
                mine.at = inventory.version
                if text := changes(call, this, mine):
                    mine.version += 1
                    return f"<returnval><version>{mine.version}</version>{text}</returnval>"
            left = deadline - time.monotonic()
            if left <= 0:
                return ""
            inventory.lock.wait(min(left, LOOK))
            if call.session is not None and all(each is not call.session for each in call.sessions.all()):
                raise vim.fault.NotAuthenticated(
                    object=this.ref, privilegeId="System.View", msg="The session is not authenticated."
                )


def start(mine: Waiter, version: str | None) -> None:
    """Without a version, start again from nothing. Raises InvalidCollectorVersion for any but the last
    version.
    """
    if not version:
        mine.seen, mine.at = {}, -1
    elif version != str(mine.version):
        raise vmodl.query.InvalidCollectorVersion(msg=f"the version {version!r} is not the collector's last")


def changes(call: Call, this: Managed, mine: Waiter) -> str:
    """The `filterSet` elements of all filters that see a change."""
    parts = []
    for ref in this["filter"]:
        each = call.inventory.objects.get(moid(ref))
        if each is None or each.hidden.get("session") != (call.session and call.session.key):
            continue
        objects = differences(call, each["spec"], mine.seen.setdefault(each.moid, Seen()))
        if objects:
            parts.append(
                f'<filterSet><filter type="PropertyFilter">{each.moid}</filter>{objects}</filterSet>'
            )
    return "".join(parts)


def differences(call: Call, spec: Any, seen: Seen) -> str:
    """The `objectSet` elements: entered, modified and left objects. The filter then knows the new state."""
    try:
        selected = select(call, spec)
    except vmodl.fault.ManagedObjectNotFound:
        selected = []
    parts, now = [], {}
    for managed, paths in selected:
        known = seen.objects.get(managed.moid)
        current = {path: prop_set(call, managed, path) for path in paths}
        now[managed.moid] = managed.kind, current
        if known is None:
            parts.append(
                update("enter", managed.kind, managed.moid, "".join(map(change, current, current.values())))
            )
        elif current != known[1]:
            altered = {path: text for path, text in current.items() if text != known[1].get(path)}
            parts.append(
                update("modify", managed.kind, managed.moid, "".join(map(change, altered, altered.values())))
            )
    left = [(kind, gone) for gone, (kind, _) in seen.objects.items() if gone not in now]
    parts += [update("leave", kind, gone, "") for kind, gone in left]
    seen.objects = now
    return "".join(parts)


def update(how: str, kind: str, ident: str, changed: str) -> str:
    """One `objectSet` element."""
    return f'<objectSet><kind>{how}</kind><obj type="{kind}">{ident}</obj>{changed}</objectSet>'


def change(path: str, text: str) -> str:
    """A `propSet` as a `changeSet`; an unset property without a value."""
    value = text.partition("</name>")[2].removesuffix("</propSet>")
    return f"<changeSet><name>{escaped(path)}</name><op>assign</op>{value}</changeSet>"
