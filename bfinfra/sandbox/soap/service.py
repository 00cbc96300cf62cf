"""ServiceInstance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.soap.dispatch import Call, method

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

SERVICE = "vim.ServiceInstance"


@method(SERVICE, "RetrieveServiceContent", writes=False)
def content(_: Call, this: Managed, __: object) -> Any:
    """Return the managers and the root folder."""
    return this["content"]


@method(SERVICE, "CurrentTime", writes=False)
def current_time(call: Call, _: Managed, __: object) -> Any:
    """The server's time."""
    return now(call.inventory)
