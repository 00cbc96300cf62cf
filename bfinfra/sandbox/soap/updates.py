"""Waiting for changes: filters, WaitForUpdatesEx, CancelWaitForUpdates."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import moid, support, vim, vmodl
from bfinfra.sandbox.soap.collector import COLLECTOR, own
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.properties import elements, escaped, is_missing
from bfinfra.sandbox.soap.selection import select
from bfinfra.sandbox.soap.wire import written

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

LONGEST = 1800.0
LOOK = 5.0  # seconds between two checks whether a waiter's session is still open
PAGE = 100  # objects in an answer at most, whatever a client asks for


@dataclass
class Sent:
    """The values that a filter has sent to its client: the text of each path, by object."""

    objects: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)  # id → type, path → element
    missing_reported: bool = False  # whether the filter has sent which of its named objects there are not


@dataclass
class Waiter:
    """A collector's state for one session: the last version sent, what each filter has sent, and the rest of
    an answer that was longer than a page: ids of filters with an element each.
    """

    version: int = 0
    at: int = -1
    cancelled: bool = False
    sent_by_filter: dict[str, Sent] = field(default_factory=dict)
    rest: list[tuple[str, str]] = field(default_factory=list)


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
def destroy_filter(call: Call, this: Managed, _: object) -> None:
    """Forget the filter."""
    collector = call.inventory.objects.get(this.hidden["collector"])
    if collector is not None:
        collector["filter"] = [ref for ref in collector["filter"] if ref != this.ref]
        waiter(call, collector).sent_by_filter.pop(this.moid, None)
    call.inventory.remove(this)


@method(COLLECTOR, "CancelWaitForUpdates", writes=False)
def cancel(call: Call, this: Managed, _: object) -> None:
    """End the caller's wait with RequestCanceled."""
    waiter(call, this).cancelled = True
    call.inventory.touch(this)


@method(COLLECTOR, "WaitForUpdatesEx", writes=False, locked=False, raw=True)
def wait_ex(call: Call, this: Managed, args: Any) -> str:
    """The changes since a version, page by page. Waits for them up to `maxWaitSeconds`; "" if there are
    none.
    """
    asked = args.options
    limit = LONGEST if asked is None or asked.maxWaitSeconds is None else asked.maxWaitSeconds
    return wait(call, this, args.version, limit, min(PAGE, (asked and asked.maxObjectUpdates) or PAGE))


@method(COLLECTOR, "WaitForUpdates", writes=False, locked=False, raw=True)
def wait_long(call: Call, this: Managed, args: Any) -> str:
    """The older call, which waits without an end."""
    return wait(call, this, args.version, LONGEST)


@method(COLLECTOR, "CheckForUpdates", writes=False, locked=False, raw=True)
def check(call: Call, this: Managed, args: Any) -> str:
    """The older call, which doesn't wait."""
    return wait(call, this, args.version, 0)


def wait(call: Call, this: Managed, version: str | None, limit: float, page: int | None = None) -> str:
    """Look for changes now, and again after each change of the inventory. `page`: objects in an answer."""
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
            if not mine.rest and mine.at != inventory.version:
                mine.at = inventory.version
                mine.rest = changes(call, this, mine)
            if mine.rest:
                mine.version += 1
                sent, mine.rest = mine.rest[:page], mine.rest[len(mine.rest[:page]) :]
                more = "<truncated>true</truncated>" if mine.rest else ""
                return f"<returnval><version>{mine.version}</version>{by_filter(sent)}{more}</returnval>"
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
        mine.sent_by_filter, mine.at, mine.rest = {}, -1, []
    elif version != str(mine.version):
        raise vmodl.query.InvalidCollectorVersion(msg=f"the version {version!r} is not the collector's last")


def changes(call: Call, this: Managed, mine: Waiter) -> list[tuple[str, str]]:
    """The elements of all filters that see a change."""
    found = []
    for ref in this["filter"]:
        each = call.inventory.objects.get(moid(ref))
        if each is None or each.hidden.get("session") != (call.session and call.session.key):
            continue
        altered = differences(call, each["spec"], mine.sent_by_filter.setdefault(each.moid, Sent()))
        found += [(each.moid, text) for text in altered]
    return found


def by_filter(sent: list[tuple[str, str]]) -> str:
    """The `filterSet` elements."""
    return "".join(
        f'<filterSet><filter type="PropertyFilter">{ident}</filter>{"".join(each[1] for each in some)}'
        "</filterSet>"
        for ident, some in itertools.groupby(sent, key=lambda each: each[0])
    )


def differences(call: Call, spec: Any, sent_by_filter: Sent) -> list[str]:
    """The `objectSet` elements of entered, modified and left objects, and the `missingSet`. The filter keeps
    the new state.
    """
    try:
        selected = select(call, spec)
    except vmodl.fault.ManagedObjectNotFound:
        selected = []
    parts, now = [], {}
    for managed, paths in selected:
        known = sent_by_filter.objects.get(managed.moid)
        current = elements(call, managed, paths)
        now[managed.moid] = managed.kind, current
        if known is None:
            parts.append(update("enter", managed.kind, managed.moid, current))
        elif current != known[1]:
            altered = {path: text for path, text in current.items() if text != known[1].get(path)}
            parts.append(update("modify", managed.kind, managed.moid, altered))
    left = [(kind, gone) for gone, (kind, _) in sent_by_filter.objects.items() if gone not in now]
    parts += [update("leave", kind, gone, {}) for kind, gone in left]
    sent_by_filter.objects = now
    if not sent_by_filter.missing_reported and spec.reportMissingObjectsInResults:
        parts += missing(call, [each.obj for each in spec.objectSet])
    sent_by_filter.missing_reported = True
    return parts


def missing(call: Call, named: Iterable[object]) -> list[str]:
    """The `missingSet` elements of a filter: those of the objects that there are not."""
    parts = []
    for ref in named:
        if moid(ref) not in call.inventory.objects:
            fault = vmodl.fault.ManagedObjectNotFound(obj=ref)
            why = written("fault", fault, vmodl.LocalizedMethodFault, call.version)
            kind = support.GetWsdlName(type(ref))
            parts.append(f'<missingSet><obj type="{kind}">{escaped(moid(ref))}</obj>{why}</missingSet>')
    return parts


def update(how: str, kind: str, ident: str, altered: dict[str, str]) -> str:
    """One `objectSet` element."""
    shown = sorted(altered, key=lambda path: is_missing(altered[path]))
    changed = "".join(change(path, altered[path]) for path in shown)
    return f'<objectSet><kind>{how}</kind><obj type="{kind}">{ident}</obj>{changed}</objectSet>'


def change(path: str, text: str) -> str:
    """A `propSet` as a `changeSet`; an unset property without a value; a `missingSet` as it is."""
    if is_missing(text):
        return text
    value = text.partition("</name>")[2].removesuffix("</propSet>")
    return f"<changeSet><name>{escaped(path)}</name><op>assign</op>{value}</changeSet>"
