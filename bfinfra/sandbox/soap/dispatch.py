"""Finds the handler of each method: handlers register by type and wire name; rights come from the API's own
metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.managed import Managed
from bfinfra.sandbox.inventory.permissions import anchor, holds
from bfinfra.sandbox.inventory.vmtypes import support, vim, vmodl

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.store import Inventory
    from bfinfra.sandbox.sessions import Session, Sessions

Handler = Callable[..., Any]


@dataclass(frozen=True)
class Method:
    """A handler and the properties by which it is dispatched."""

    handle: Handler
    writes: bool
    locked: bool
    raw: bool  # the handler writes its own response elements


METHODS: dict[tuple[str, str], Method] = {}
CALLING: ContextVar[Call] = ContextVar("calling")  # for properties that differ by caller


def method(
    kind: str, name: str, *, writes: bool = True, locked: bool = True, raw: bool = False
) -> Callable[[Handler], Handler]:
    """Register `handler(call, this, args)`, the arguments as attributes; `locked` runs it under the
    inventory's lock.
    """

    def register(handle: Handler) -> Handler:
        METHODS[kind, name] = Method(handle, writes, locked, raw)
        return handle

    return register


def lookup(this: Managed, name: str) -> Method:
    """The handler of a method on an object. MethodNotFound where the sandbox has none."""
    for kind in type(this.ref).__mro__:
        found = METHODS.get((getattr(kind, "__name__", ""), name))
        if found:
            return found
    raise vmodl.fault.MethodNotFound(
        receiver=this.ref, method=name, msg=f"The sandbox does not implement {this.kind}.{name}"
    )


@dataclass
class Call:
    """The context that a handler gets besides its arguments."""

    inventory: Inventory
    sessions: Sessions
    session: Session | None
    version: str
    method: str
    agent: str = ""
    local: bool = (
        False  # the caller reached the server by a loopback name: upload addresses must lead back to it
    )
    task_fault: Any = None  # a fault rule's: the task that this call starts ends with it
    cookie: str | None = None  # set where the answer must carry a new session cookie

    @property
    def user(self) -> str:
        """The caller's name as the API shows it, its domain first."""
        return shown_name(self.session.user.name) if self.session else ""

    def need(self, privilege: str | None, *entities: Managed) -> None:
        """NoPermission where the caller lacks the privilege on one of the entities."""
        if privilege in (None, "System.Anonymous"):
            return
        if self.session is None:
            raise vim.fault.NotAuthenticated(
                privilegeId=privilege, object=entities[0].ref, msg="The session is not authenticated."
            )
        for entity in entities:
            if not holds(self.inventory, self.session.user, str(privilege), entity):
                entity = anchor(self.inventory, entity)  # noqa: PLW2901 - the fault names what the right is wanted on
                raise vim.fault.NoPermission(
                    object=entity.ref,
                    privilegeId=privilege,
                    msg=(
                        f"Permission to perform this operation was denied: {privilege} on "
                        f"{entity.name or entity.moid}"
                    ),
                )


def shown_name(name: str) -> str:
    """A user as vCenter shows it: the domain in capitals, a backslash, the name."""
    user, _, domain = name.partition("@")
    return f"{domain.upper()}\\{user}" if domain else user


def info_of(name: str, this: Managed) -> Any:
    """The metadata of a method. MethodNotFound where the API has none of this name."""
    try:
        return support.GetWsdlMethod("urn:vim25", name).info
    except KeyError:
        raise vmodl.fault.MethodNotFound(
            receiver=this.ref, method=name, msg=f"vSphere has no method {this.kind}.{name}"
        ) from None


def check_rights(call: Call, this: Managed, info: Any, arguments: dict[str, Any]) -> None:
    """The privileges that the API's metadata asks for: on the object, and on the objects among the
    arguments.
    """
    call.need(info.privId, this)
    for param in info.params:
        given = arguments.get(param.name)
        if param.privId and given is not None:
            for ref in given if isinstance(given, list) else [given]:
                if isinstance(ref, support.ManagedObject):
                    call.need(param.privId, call.inventory.get(ref))
