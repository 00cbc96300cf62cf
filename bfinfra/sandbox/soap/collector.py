"""PropertyCollector: reading in bulk, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import moid, support, vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.properties import object_content
from bfinfra.sandbox.soap.selection import select

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

COLLECTOR = "vmodl.query.PropertyCollector"
PAGE = 10_000


def contents(call: Call, specs: Any) -> list[str]:
    """The content of each selected object, in the order of the specifications."""
    return [object_content(call, managed, paths) for spec in specs for managed, paths in select(call, spec)]


@method(COLLECTOR, "RetrievePropertiesEx", writes=False, raw=True)
def retrieve(call: Call, _: Managed, args: Any) -> str:
    """The first page."""
    return page(call, contents(call, args.specSet), (args.options and args.options.maxObjects) or PAGE)


@method(COLLECTOR, "ContinueRetrievePropertiesEx", writes=False, raw=True)
def proceed(call: Call, _: Managed, args: Any) -> str:
    """The next page. InvalidArgument for a token that isn't open."""
    rest = call.session.held.pop(f"page {args.token}", None) if call.session else None
    if rest is None:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="token", msg=f"no retrieval is open under the token {args.token!r}"
        )
    return page(call, rest[1], rest[0])


@method(COLLECTOR, "CancelRetrievePropertiesEx", writes=False)
def cancel(call: Call, _: Managed, args: Any) -> None:
    """Give up the rest of a retrieval."""
    if call.session is None or call.session.held.pop(f"page {args.token}", None) is None:
        raise vmodl.fault.InvalidArgument(invalidProperty="token")


def page(call: Call, found: list[str], size: int) -> str:
    """Up to `size` objects; the rest is held by the session under a token. "" where nothing was selected."""
    if not found:
        return ""
    token = ""
    if len(found) > size and call.session is not None:
        name = call.inventory.new_id("page-")
        call.session.held[f"page {name}"] = size, found[size:]
        token = f"<token>{name}</token>"
    return f"<returnval>{token}{''.join(f'<objects>{each}</objects>' for each in found[:size])}</returnval>"


@method(COLLECTOR, "RetrieveProperties", writes=False, raw=True)
def retrieve_all(call: Call, _: Managed, args: Any) -> str:
    """Everything at once: the older call."""
    return "".join(f"<returnval>{each}</returnval>" for each in contents(call, args.specSet))


@method(COLLECTOR, "CreatePropertyCollector", writes=False)
def create(call: Call, _: Managed, __: object) -> Any:
    """A collector of the caller's own, until it is destroyed or the session ends."""
    call.need("System.View", call.inventory.objects["propertyCollector"])
    return own(call, vmodl.query.PropertyCollector, filter=[]).ref


def own(call: Call, kind: object, **props: object) -> Managed:
    """A new object that belongs to the caller's session."""
    if call.session is None:
        raise vim.fault.NotAuthenticated(
            object=call.inventory.objects["SessionManager"].ref, privilegeId="System.View"
        )
    drop_orphans(call)
    moid = call.inventory.new_id(f"session[{call.session.key}]{support.GetWsdlName(kind)}-")
    return call.inventory.add(kind, moid, {"session": call.session.key}, **props)


def drop_orphans(call: Call) -> None:
    """Forget what belonged to sessions that are over."""
    living = {each.key for each in call.sessions.all()}
    for each in [
        managed
        for managed in call.inventory.objects.values()
        if "session" in managed.hidden and managed.hidden["session"] not in living
    ]:
        call.inventory.objects.pop(each.moid, None)


@method(COLLECTOR, "DestroyPropertyCollector", writes=False)
def destroy(call: Call, this: Managed, _: object) -> None:
    """Destroy a collector with its filters."""
    for ref in this["filter"]:
        call.inventory.objects.pop(moid(ref), None)
    if this.hidden.get("session"):
        call.inventory.remove(this)
