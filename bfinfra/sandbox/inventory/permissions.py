"""vCenter's permissions: roles, and permissions that descendants inherit until a nearer one overrides them.

Source: vSphere Security, "Hierarchical Inheritance of Permissions". Kept in the AuthorizationManager's hidden
values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import moid, vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER, ROOT = "AuthorizationManager", "group-d1"
ADMIN, READ_ONLY, NO_ACCESS, FIRST_OWN = -1, -2, -5, 100
READ = ("System.Anonymous", "System.Read", "System.View")  # what every role has but NO_ACCESS
OWNERS = ("host", "owner", "vm", "datastore")  # which entity a helper belongs to: its rights are asked there
Permission = dict[str, Any]


def furnish(inventory: Inventory) -> None:
    """Add the world's users, each with a permission at the root."""
    own = {
        number: each
        for number, each in enumerate(inventory.world.users, FIRST_OWN)
        if not isinstance(each.role, str)
    }
    roles = {
        str(number): {"name": f"role of {each.name}", "privileges": sorted({*READ, *each.role})}
        for number, each in own.items()
    }
    numbers = {each.name: number for number, each in own.items()} | {
        each.name: ADMIN if each.role == "admin" else READ_ONLY
        for each in inventory.world.users
        if isinstance(each.role, str)
    }
    found = [permission(ROOT, name, number, group=False, propagate=True) for name, number in numbers.items()]
    inventory.objects[MANAGER].hidden |= {"roles": roles, "permissions": found}


def permission(entity: str, principal: str, role: int, *, group: bool, propagate: bool) -> Permission:
    """One permission; `entity` by id, `principal` as name@domain."""
    return {"entity": entity, "principal": principal, "group": group, "role": role, "propagate": propagate}


def roles(inventory: Inventory) -> dict[str, dict[str, Any]]:
    """The roles that were created through the API, by number."""
    found: dict[str, dict[str, Any]] = inventory.objects[MANAGER].hidden["roles"]
    return found


def permissions(inventory: Inventory) -> list[Permission]:
    """All permissions."""
    found: list[Permission] = inventory.objects[MANAGER].hidden["permissions"]
    return found


def holds(inventory: Inventory, user: object, privilege: str, managed: Managed | None = None) -> bool:
    """Return whether the user has the privilege on the object, on the root where none is given."""
    entity = anchor(inventory, managed) if managed is not None else inventory.objects[ROOT]
    if privilege == "System.Anonymous" or (privilege in READ and entity is not managed):
        return True
    return any(_has(inventory, number, privilege) for number in effective(inventory, user, entity))


def effective(inventory: Inventory, user: Any, entity: Managed) -> set[int]:
    """The roles that count for the user on an entity: those of the nearest permission of each line of
    ancestors.
    """
    spots = inventory.remembered(f"permissions of {user.name}", lambda: _spots(inventory, user))
    if set(spots) == {ROOT} and spots[ROOT][1]:
        return set(spots[ROOT][0])
    found: set[int] = set()
    itself = (entity, owner(inventory, entity))
    for line in lines(inventory, entity):
        for at in line:
            numbers, propagate = spots.get(at.moid, (set(), False))
            if numbers and (propagate or at in itself):
                found |= numbers
                break
    return found


def owner(inventory: Inventory, entity: Managed) -> Managed:
    """Of a part of a "complex entity" the parent, whose permissions it has and whose alone can be set: of a
    datacenter's own folders, a cluster's root pool, a standalone host (vSphere API, AuthorizationManager).
    Of anything else itself.
    """
    parent = inventory.parent(entity)
    if parent is None:
        return entity
    alone = parent.is_a(vim.ComputeResource) and not parent.is_a(vim.ClusterComputeResource)
    part = (
        (entity.is_a(vim.Folder) and parent.is_a(vim.Datacenter))
        or (entity.is_a(vim.ResourcePool) and parent.is_a(vim.ComputeResource))
        or (entity.is_a(vim.HostSystem) and alone)
    )
    return parent if part else entity


def lines(inventory: Inventory, entity: Managed) -> list[list[Managed]]:
    """Its ancestors, itself first; a machine has two lines: its folders, and its pools, cluster and so on."""
    found = [inventory.ancestors(entity)]
    pool = entity.props.get("resourcePool") if entity.is_a(vim.VirtualMachine) else None
    if pool is not None and moid(pool) in inventory.objects:
        found.append([entity, *inventory.ancestors(inventory.get(pool))])
    return found


def anchor(inventory: Inventory, managed: Managed) -> Managed:
    """The entity on which rights for this object are asked: itself, whose helper it is, or the root."""
    if managed.is_a(vim.ManagedEntity):
        return managed
    owner = next(
        (managed.hidden[name] for name in OWNERS if managed.hidden.get(name) in inventory.objects), ROOT
    )
    return inventory.objects[owner]


def _spots(inventory: Inventory, user: Any) -> dict[str, tuple[set[int], bool]]:
    """By entity, the roles there and whether they propagate; a permission of one's own beats those of
    groups.
    """
    own = [
        each
        for each in permissions(inventory)
        if not each["group"] and each["principal"].lower() == user.name.lower()
    ]
    groups = [each for each in permissions(inventory) if each["group"] and each["principal"] in user.groups]
    return {**_by_entity(groups), **_by_entity(own)}


def _by_entity(found: Iterable[Permission]) -> dict[str, tuple[set[int], bool]]:
    spots: dict[str, tuple[set[int], bool]] = {}
    for each in found:
        numbers, propagate = spots.get(each["entity"], (set(), False))
        spots[each["entity"]] = {*numbers, each["role"]}, propagate or each["propagate"]
    return spots


def _has(inventory: Inventory, number: int, privilege: str) -> bool:
    if number in (ADMIN, NO_ACCESS):
        return number == ADMIN
    return privilege in (
        READ if number == READ_ONLY else roles(inventory).get(str(number), {}).get("privileges", ())
    )
