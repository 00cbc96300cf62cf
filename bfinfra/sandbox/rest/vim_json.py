"""vSphere's JSON in REST bodies, checked by pyVmomi's types: each object names its type, has no unknown
fields, and has all required ones.
"""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.inventory.vmtypes import field, fields, support, wsdl_type
from bfinfra.sandbox.rest.errors import Refused

PLAIN: tuple[tuple[type, tuple[type, ...]], ...] = (
    (bool, (bool,)),
    (int, (int,)),
    (float, (float, int)),
    (str, (str,)),
)


def check_vim(value: object, wanted: object, at: str) -> None:
    """Raises Refused (INVALID_ARGUMENT) if a value is not of this type of pyVmomi's."""
    if isinstance(value, list):
        element = getattr(wanted, "Item", None)
        if element is None:
            raise _wrong(at, "a list where one value is expected")
        for index, each in enumerate(value):
            check_vim(each, element, f"{at}[{index}]")
    elif isinstance(wanted, type) and issubclass(wanted, support.DataObject):
        _object(value, wanted, at)
    elif isinstance(wanted, type) and issubclass(wanted, support.Enum):
        words: list[str] = wanted.values  # type: ignore[attr-defined]  # pyVmomi's enums have them
        if value not in words:
            raise _wrong(at, f"{str(value)[:80]!r} is none of {', '.join(words)}")
    else:
        _plain(value, wanted, at)


def _object(value: Any, wanted: Any, at: str) -> None:
    if not isinstance(value, dict) or "_typeName" not in value:
        raise _wrong(at, "an object with _typeName is expected")
    try:
        kind = wsdl_type(value["_typeName"])
    except KeyError:
        raise _wrong(at, f"there is no type {str(value['_typeName'])[:80]!r}") from None
    if not issubclass(kind, wanted):
        raise _wrong(at, f"{value['_typeName']} is no {wanted.__name__}")
    known = {each.name: each for each in fields(kind)}
    given = {name: each for name, each in value.items() if name != "_typeName" and each is not None}
    if extra := sorted(set(given) - set(known)):
        raise _wrong(at, f"unexpected field {', '.join(extra)}")
    absent = [
        name for name, each in known.items() if not each.flags & support.F_OPTIONAL and name not in given
    ]
    if absent:
        raise _wrong(at, f"field {', '.join(absent)} is missing")
    for name, each in given.items():
        check_vim(each, field(kind, name).type, f"{at}.{name}")


def _plain(value: object, wanted: object, at: str) -> None:
    for kind, allowed in PLAIN:
        if isinstance(wanted, type) and issubclass(wanted, kind):
            if not isinstance(value, allowed) or (kind is not bool and isinstance(value, bool)):
                raise _wrong(at, f"{type(value).__name__} where {kind.__name__} is expected")
            return


def _wrong(at: str, what: str) -> Refused:
    return Refused("INVALID_ARGUMENT", f"{at}: {what}")
