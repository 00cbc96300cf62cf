"""The journal of events by user, entity and time; the oldest are dropped beyond a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vmtypes import fields, vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory
    from bfinfra.sandbox.soap.dispatch import Call

SAVED = 2000
ARGUMENTS = (  # which argument of an event names an entity of this type
    (vim.VirtualMachine, "vm", vim.event.VmEventArgument, "vm"),
    (vim.HostSystem, "host", vim.event.HostEventArgument, "host"),
    (vim.ResourcePool, "resourcePool", vim.event.ResourcePoolEventArgument, "resourcePool"),
    (vim.Datacenter, "datacenter", vim.event.DatacenterEventArgument, "datacenter"),
    (vim.ComputeResource, "computeResource", vim.event.ComputeResourceEventArgument, "computeResource"),
)


def record(call: Call, kind: object, entity: Managed | None, text: str, **fields: object) -> None:
    """Record an event of the caller's about an entity."""
    note(call.inventory, call.user, kind, entity, text, **fields)


def note(
    inventory: Inventory, user: str, kind: Any, entity: Managed | None, text: str, **fields: Any
) -> None:
    """Record an event; the entity's host, cluster and datacenter come with it."""
    with inventory.lock:
        key = int(inventory.new_id("", 1))
        event = kind(
            key=key,
            chainId=key,
            createdTime=now(inventory),
            userName=user,
            fullFormattedMessage=text,
            **fields,
        )
        for each in related(inventory, entity) if entity else ():
            for type_, name, argument, reference in ARGUMENTS:
                if each.is_a(type_) and has(event, name) and getattr(event, name) is None:
                    setattr(event, name, argument(name=each.name, **{reference: each.ref}))
        inventory.events.append(event)
        del inventory.events[:-SAVED]


def has(event: Any, name: str) -> bool:
    """Return whether the event's type has this field."""
    return any(info.name == name for info in fields(event))


def related(inventory: Inventory, entity: Managed) -> list[Managed]:
    """The entity, its host where it is a machine, and what holds them."""
    found = inventory.ancestors(entity)
    if entity.is_a(vim.VirtualMachine) and entity["runtime"].host is not None:
        found += inventory.ancestors(inventory.get(entity["runtime"].host))
    return found
