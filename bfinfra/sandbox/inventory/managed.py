"""One managed object: its reference and its stored properties."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.inventory.vmtypes import moid, support


class Managed:
    """`props` holds pyVmomi values by property name; `version` grows with each change; `relations` come from
    the inventory.
    """

    __slots__ = ("hidden", "props", "ref", "version", "wire")

    def __init__(self, ref: Any, props: dict[str, Any], hidden: dict[str, Any] | None = None) -> None:
        self.ref = ref
        self.props = props
        self.hidden = hidden or {}  # the sandbox's own data, which no client sees: JSON values only
        self.version = 1
        self.wire: dict[tuple[str, str], tuple[int, str]] = {}  # serialised values by path and API version

    @property
    def moid(self) -> str:
        """The id, unique in the inventory."""
        return moid(self.ref)

    @property
    def kind(self) -> str:
        """The wire name of the type: "VirtualMachine"."""
        return str(support.GetWsdlName(type(self.ref)))

    @property
    def name(self) -> str:
        """The name, unescaped as the API gives it; "" where the type has none."""
        return str(self.props.get("name") or "")

    @property
    def parent(self) -> Any:
        """The reference of the parent, or None."""
        return self.props.get("parent")

    def is_a(self, *types: Any) -> bool:
        """Return whether the object is of one of these types."""
        return issubclass(type(self.ref), types)

    def __getitem__(self, name: str) -> Any:
        return self.props[name]

    def __setitem__(self, name: str, value: object) -> None:
        self.props[name] = value

    def __repr__(self) -> str:
        return f"<{self.kind} {self.moid} {self.name}>"
