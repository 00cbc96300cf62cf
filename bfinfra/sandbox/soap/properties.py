"""Properties as wire text, kept until the object changes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import COMPUTED, OF_ITSELF, UNSTABLE
from bfinfra.sandbox.inventory.paths import read
from bfinfra.sandbox.inventory.permissions import READ, holds
from bfinfra.sandbox.inventory.vmtypes import field, fields, support, vim, vmodl
from bfinfra.sandbox.soap import wire

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory
    from bfinfra.sandbox.soap.dispatch import Call


def fetch(call: Call, this: Managed, name: str) -> str:
    """PyVmomi's attribute access: one property in its declared type. InvalidProperty where the type has
    none.
    """
    try:
        info = field(type(this.ref), name)
    except (AttributeError, KeyError):
        raise vmodl.query.InvalidProperty(name=name) from None
    if info.privId != "System.Anonymous":
        call.need("System.View", this)
        call.need(info.privId, this)
    value = read(call.inventory, this, info.name)
    return (
        wire.written("returnval", value, info.type, call.version, info.flags | support.F_OPTIONAL)
        if value is not None
        else ""
    )


def prop_set(call: Call, managed: Managed, path: str) -> str:
    """The `propSet` element of a path; "" where the property is unset. InvalidProperty where there can be
    none.
    """
    known = managed.wire.get((path, call.version))
    stamp = stamp_of(call.inventory, managed, path)
    if known and known[0] == stamp:
        return known[1]
    value = read(call.inventory, managed, path)
    text = (
        ""
        if value is None
        else (
            f"<propSet><name>{escaped(path)}</name>{wire.written('val', value, object, call.version)}"
            "</propSet>"
        )
    )
    managed.wire[path, call.version] = stamp, text
    return text


def stamp_of(inventory: Inventory, managed: Managed, path: str) -> int:
    """A number that changes when the value may have: the object's version, the inventory's for what follows
    from others.
    """
    first = path.partition(".")[0].partition("[")[0]
    if first in UNSTABLE:
        inventory.moment += 1
        return -inventory.moment
    derived = any((getattr(kind, "__name__", ""), first) in COMPUTED for kind in type(managed.ref).__mro__)
    alone = managed.is_a(vim.VirtualMachine) and first in OF_ITSELF
    return inventory.version if derived and not alone else managed.version


def escaped(path: str) -> str:
    """A path as XML text."""
    return path.replace("&", "&amp;").replace("<", "&lt;")


def all_paths(managed: Managed) -> list[str]:
    """Every property of the object's type."""
    return [info.name for info in fields(type(managed.ref))]


def object_content(call: Call, managed: Managed, paths: list[str]) -> str:
    """The `obj`, `propSet` and `missingSet` elements of an object."""
    shown = sorted(elements(call, managed, paths).values(), key=is_missing)
    return f'<obj type="{managed.kind}">{managed.moid}</obj>{"".join(shown)}'


def elements(call: Call, managed: Managed, paths: list[str]) -> dict[str, str]:
    """The `propSet` or `missingSet` element of each path; "" where the property is unset. Without a session,
    what isn't public is missing.
    """
    found = {}
    error = hidden(call, managed)
    for path in paths:
        lacking = error if error is not None and not public(managed, path) else guarded(call, managed, path)
        if lacking is not None:
            info = wire.written("fault", lacking, vmodl.LocalizedMethodFault, call.version)
            found[path] = f"<missingSet><path>{escaped(path)}</path>{info}</missingSet>"
        else:
            found[path] = prop_set(call, managed, path)
    return found


def is_missing(element: str) -> bool:
    """Return whether it is a `missingSet`. Those follow the others."""
    return element.startswith("<missingSet>")


def hidden(call: Call, managed: Managed) -> Any:
    """The fault in place of each property of an object that the caller may not see, or None."""
    if call.session is None:
        return vim.fault.NotAuthenticated(object=managed.ref, privilegeId="System.View")
    if not holds(call.inventory, call.session.user, "System.Read", managed):
        return vim.fault.NoPermission(object=managed.ref, privilegeId="System.Read")
    return None


def guarded(call: Call, managed: Managed, path: str) -> Any:
    """The fault for a property that asks for a right of its own, which the caller lacks, or None. Source: the
    API's metadata (sessionList).
    """
    kind: Any = type(managed.ref)
    info = known(kind, path.partition(".")[0].partition("[")[0])
    wanted = info.privId if info is not None else None
    if (
        call.session is None
        or wanted in (None, *READ)
        or holds(call.inventory, call.session.user, wanted, managed)
    ):
        return None
    return vim.fault.NoPermission(object=managed.ref, privilegeId=wanted)


@functools.cache
def known(kind: object, name: str) -> Any:
    """The metadata of a property, or None if the type has none of that name; reading it raises a fault."""
    try:
        return field(kind, name)
    except (AttributeError, KeyError):
        return None


def public(managed: Managed, path: str) -> bool:
    """Return whether the property may be read before the login."""
    try:
        info = field(type(managed.ref), path.partition(".")[0])
    except (AttributeError, KeyError):
        raise vmodl.query.InvalidProperty(name=path) from None
    return bool(info.privId == "System.Anonymous")
