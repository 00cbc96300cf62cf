"""pyVmomi's types without its stubs, which call every constructor untyped and every field optional."""

from __future__ import annotations

import functools
from typing import Any

import pyVmomi
from pyVmomi import VmomiSupport

vim: Any = pyVmomi.vim  # type: ignore[attr-defined, unused-ignore]  # made at import: some releases' stubs know it
vmodl: Any = pyVmomi.vmodl  # type: ignore[attr-defined, unused-ignore]  # as above
support: Any = VmomiSupport


def wsdl_type(name: str) -> Any:
    """The type of a wire name such as "VirtualMachine". Raises KeyError if there is none."""
    return support.GetWsdlType("urn:vim25", name)


def typed(value: object, kind: object) -> Any:
    """The value as the declared type, so that its type is on the wire when it is in an `xsd:anyType`."""
    if (
        value is None
        or kind is object
        or isinstance(value, (support.DataObject, support.ManagedObject, type))
    ):
        return value
    if not isinstance(kind, type) or isinstance(value, support.ManagedMethod):
        return value
    if isinstance(value, list):
        return value if isinstance(value, kind) else kind(value)
    return value if type(value) is kind or kind in (support.PropertyPath, type) else kind(value)


def moid(ref: Any) -> str:
    """The id of a reference."""
    return str(ref._moId)  # noqa: SLF001 - pyVmomi's public name


def field(kind: Any, name: str) -> Any:
    """Return a type's declaration of a field: name, type, version, flags. Raise AttributeError or KeyError
    where it has none.
    """
    return kind._GetPropertyInfo(name)  # noqa: SLF001 - pyVmomi's public name


def fields(value: object) -> tuple[Any, ...]:
    """The fields that a data object or a type declares."""
    return _declared(value if isinstance(value, type) else type(value))


@functools.cache
def _declared(kind: Any) -> tuple[Any, ...]:
    return tuple(kind._GetPropertyList())  # noqa: SLF001 - pyVmomi's public name
