"""Reading property paths: `runtime.host`, `config.extraConfig["key"]`, `config.hardware.device[4000]`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import COMPUTED
from bfinfra.sandbox.inventory.vmtypes import support, typed, vmodl

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

STEP = re.compile(r'(?:^|\.)(\w+)|\[(?:"((?:[^"\\]|\\.)*)"|([^\]"]*))\]')


def read(inventory: Inventory, managed: Managed, path: str) -> Any:
    """The value at the path, typed for the wire; None where it is unset. InvalidProperty where there can be
    none.
    """
    first, *rest = steps(path)
    info = declared(type(managed.ref), first[0], path)
    value, kind = top(inventory, managed, first[0]), info.type
    for name, key in rest:
        value, kind = (below(value, kind, name, path)) if name else (keyed(value, kind, key, path))
    return typed(value, kind)


def steps(path: str) -> list[tuple[str, str]]:
    """(name, "") for a field, ("", key) for an element."""
    found, at = [], 0
    for match in STEP.finditer(path):
        if match.start() != at:
            break
        at = match.end()
        quoted = re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        found.append((match[1] or "", quoted or ""))
    if at != len(path) or not found or not found[0][0]:
        raise vmodl.query.InvalidProperty(name=path)
    return found


def top(inventory: Inventory, managed: Managed, name: str) -> Any:
    """The object's own property: computed where a rule says so, stored otherwise; unset where it can't be
    read.
    """
    if name in managed.hidden.get("unset", ()):
        return None
    for kind in type(managed.ref).__mro__:
        rule = COMPUTED.get((getattr(kind, "__name__", ""), name))
        if rule:
            return rule(inventory, managed)
    return managed.props.get(name)


def declared(kind: Any, name: str, path: str) -> Any:
    """Return the type's declaration of a field."""
    try:
        return kind._GetPropertyInfo(name)  # noqa: SLF001 - pyVmomi's public name
    except (AttributeError, KeyError):
        raise vmodl.query.InvalidProperty(name=path) from None


def below(value: object, kind: object, name: str, path: str) -> tuple[Any, Any]:
    """A field of a data object."""
    holder = type(value) if isinstance(value, support.DataObject) else kind
    if not (isinstance(holder, type) and issubclass(holder, support.DataObject)):
        raise vmodl.query.InvalidProperty(name=path)
    info = declared(holder, name, path)
    return (None if value is None else getattr(value, info.name)), info.type


def keyed(value: Any, kind: Any, key: str, path: str) -> tuple[Any, Any]:
    """An element of an array by its `key` field."""
    if not issubclass(kind, list):
        raise vmodl.query.InvalidProperty(name=path)
    for item in value or ():
        if str(getattr(item, "key", item)) == key:
            return item, type(item)
    return None, kind.Item
