"""References to managed objects: their ids as text, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyVmomi import vim


def moid(ref: Any) -> str:
    """The id of a managed object, such as `vm-42`; "" for None."""
    return "" if ref is None else str(ref._GetMoId())  # noqa: SLF001 - pyVmomi's public accessor has this name


def refer(content: vim.ServiceInstanceContent, kind: type[Any], ident: str) -> Any:
    """The managed object with this id, on the session of `content`."""
    return kind(ident, stub(content))


def views(content: vim.ServiceInstanceContent) -> dict[tuple[str, ...], object]:
    """The container views of the session of `content`."""
    found: dict[tuple[str, ...], object] = stub(content).views
    return found


def server(content: vim.ServiceInstanceContent) -> str:
    """host:port of the session of `content`."""
    return str(stub(content).server)


def stub(content: vim.ServiceInstanceContent) -> Any:
    """The stub adapter of the session of `content`."""
    return content.rootFolder._stub  # noqa: SLF001 - pyVmomi offers no other way to the session's stub
