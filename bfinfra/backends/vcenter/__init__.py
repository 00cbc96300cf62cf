"""vCenter: SOAP and REST with one session each, as small typed operations and frozen values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.client import VCenter

__all__ = ["VCenter"]


def __getattr__(name: str) -> Any:
    """Imports the client library when a connection is needed, not when a site is read."""
    if name != "VCenter":
        raise AttributeError(name)
    from bfinfra.backends.vcenter.client import VCenter

    return VCenter
