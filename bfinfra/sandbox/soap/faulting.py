"""Applies fault rules and the tally to SOAP calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import fields, support, wsdl_type
from bfinfra.sandbox.soap.dispatch import Call

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

API = "vcenter"


class Faulting:
    """Runs a call between what the fault rules do before and after it. Either part may be None."""

    def __init__(self, faults: Any, tally: Any) -> None:
        self.faults, self.tally = faults, tally

    @contextmanager
    def during(self, call: Call, this: Managed, arguments: dict[str, Any], *, writes: bool) -> Iterator[None]:
        """Count the call and apply the rules that match it: a SOAP fault is raised here, a task's waits for
        the task.
        """
        if self.tally is not None:
            self.tally.count(API, call.method, writes=writes)
        if self.faults is None:
            yield
            return
        with self.faults.during(API, call.method, *names(call, this, arguments), writes=writes) as effect:
            if effect.soap:
                raise fault_named(effect.soap, this, effect.message)
            call.task_fault = fault_named(effect.task, this, effect.message) if effect.task else None
            yield


def names(call: Call, this: Managed, arguments: dict[str, Any]) -> list[str]:
    """All that a rule's `object` may mean: id, name and path of the object, and the name that a specification
    gives to a new one.
    """
    found = [this.moid]
    if this.name:
        found += [this.name, call.inventory.path(this)]
    for each in arguments.values():
        spec = getattr(each, "configSpec", None) or each
        name = spec if isinstance(spec, str) else getattr(spec, "name", None)
        if isinstance(name, str) and name:
            found.append(name)
    return found


def fault_named(name: str, this: Managed, message: str) -> Any:
    """A fault of the API by its wire name, required fields filled. Raises KeyError if there is no such
    fault.
    """
    found = wsdl_type(name)(msg=message or f"{name}: injected by a fault rule")
    for info in fields(found):
        if getattr(found, info.name) is None and not info.flags & support.F_OPTIONAL:
            setattr(found, info.name, _required(info.type, this.ref))
    if hasattr(found, "privilegeId"):
        found.privilegeId = found.privilegeId or "System.Read"
    if hasattr(found, "reason"):
        found.reason = found.reason or message or "injected"
    return found


def _required(kind: type, ref: object) -> object:
    """A reference where one belongs: the call's object if it is of that type, else to none in particular."""
    if not issubclass(kind, support.ManagedObject):
        return kind()
    return ref if isinstance(ref, kind) else kind(f"{kind.__name__.rpartition('.')[2].lower()}-0")
