"""AuthorizationManager: who may do what."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.vmtypes import support, vim
from bfinfra.sandbox.soap.dispatch import Call, holds, method, shown_name

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER = "vim.AuthorizationManager"
ADMIN, READ_ONLY, FIRST_OWN = -1, -2, 100
READ = ("System.Anonymous", "System.View", "System.Read")


def privilege_ids() -> list[str]:
    """Every privilege that the API's methods name."""
    return sorted(collected())


KINDS = (vim.Folder, vim.Datacenter, vim.ClusterComputeResource, vim.HostSystem, vim.VirtualMachine, vim.ResourcePool, vim.Datastore, vim.Network, vim.CustomFieldsManager)


@functools.cache
def collected() -> frozenset[str]:
    """From the metadata of the types that the sandbox has."""
    found = set(READ)
    for kind in KINDS:
        for info in kind._GetMethodList():  # noqa: SLF001 - pyVmomi's public name
            found |= {info.privId, *(param.privId for param in info.params)} - {None}
    return frozenset(found)


def roles(inventory: Inventory) -> dict[str, tuple[int, str, list[str]]]:
    """Id, name and privileges of each user's role, by user."""
    found = {}
    for number, user in enumerate(inventory.world.users, FIRST_OWN):
        if user.role == "admin":
            found[user.name] = ADMIN, "Admin", privilege_ids()
        elif user.role == "readonly":
            found[user.name] = READ_ONLY, "ReadOnly", list(READ)
        else:
            found[user.name] = number, f"role of {user.name}", [*READ, *user.role]
    return found


@computed(MANAGER, "roleList")
def _roles(inventory: Inventory, _: Managed) -> Any:
    known = {ADMIN: ("Admin", privilege_ids()), READ_ONLY: ("ReadOnly", list(READ))}
    known |= {number: (name, privileges) for number, name, privileges in roles(inventory).values()}
    return [
        vim.AuthorizationManager.Role(roleId=number, system=number < 0, name=name, info=vim.Description(label=name, summary=name), privilege=privileges)
        for number, (name, privileges) in known.items()
    ]


@computed(MANAGER, "privilegeList")
def _privileges(_: Inventory, __: Managed) -> Any:
    return [
        vim.AuthorizationManager.Privilege(privId=each, onParent=False, name=each.rpartition(".")[2], privGroupName=each.rpartition(".")[0]) for each in privilege_ids()
    ]


@computed(MANAGER, "description")
def _description(_: Inventory, __: Managed) -> Any:
    def described(keys: Iterable[str]) -> list[Any]:
        return [vim.ElementDescription(key=key, label=key.rpartition(".")[2], summary=key) for key in sorted(keys)]

    privileges = privilege_ids()
    return vim.AuthorizationDescription(privilege=described(privileges), privilegeGroup=described({each.rpartition(".")[0] for each in privileges}))


def permissions(inventory: Inventory) -> list[Any]:
    """One permission a user, on the root, inherited by everything."""
    root = inventory.objects["group-d1"].ref
    return [
        vim.AuthorizationManager.Permission(entity=root, principal=shown_name(name), group=False, roleId=number, propagate=True)
        for name, (number, _, _) in roles(inventory).items()
    ]


@method(MANAGER, "RetrieveAllPermissions", writes=False)
def all_permissions(call: Call, _: Managed, __: Any) -> Any:
    """Every permission."""
    return permissions(call.inventory)


@method(MANAGER, "RetrieveEntityPermissions", writes=False)
def entity_permissions(call: Call, _: Managed, args: Any) -> Any:
    """An entity's permissions; inherited ones where asked for."""
    return permissions(call.inventory) if args.inherited or args.entity._moId == "group-d1" else []  # noqa: SLF001 - pyVmomi's public name


def user_named(call: Call, name: str) -> Any:
    """The world's user, by either form of the name. UserNotFound."""
    for user in call.inventory.world.users:
        if name.lower() in (user.name.lower(), shown_name(user.name).lower()):
            return user
    raise vim.fault.UserNotFound(principal=name, unresolved=True, msg=f"The user '{name}' was not found.")


@method(MANAGER, "HasUserPrivilegeOnEntities", writes=False)
def has_user(call: Call, _: Managed, args: Any) -> Any:
    """For each entity, which of the privileges the user has."""
    user = user_named(call, args.userName)
    return [
        vim.AuthorizationManager.EntityPrivilege(
            entity=ref, privAvailability=[vim.AuthorizationManager.PrivilegeAvailability(privId=each, isGranted=holds(user, each)) for each in args.privId],
        )
        for ref in args.entities
    ]


@method(MANAGER, "HasPrivilegeOnEntities", writes=False)
def has_session(call: Call, this: Managed, args: Any) -> Any:
    """The same for the user of a session."""
    session = next((each for each in call.sessions.all() if each.key == args.sessionId), None)
    if session is None:
        raise vim.fault.NotAuthenticated(object=this.ref, privilegeId="System.View")
    args.userName, args.entities = session.user.name, args.entity
    return has_user(call, this, args)


@method(MANAGER, "HasPrivilegeOnEntity", writes=False)
def has_one(call: Call, this: Managed, args: Any) -> Any:
    """The same for one entity: one answer a privilege."""
    args.entity = [args.entity]
    return [each.isGranted for each in has_session(call, this, args)[0].privAvailability]


@method(MANAGER, "FetchUserPrivilegeOnEntities", writes=False)
def fetch_user(call: Call, _: Managed, args: Any) -> Any:
    """For each entity, all that the user has."""
    user = user_named(call, args.userName)
    granted = support.GetVmodlType("string[]")(roles(call.inventory)[user.name][2])
    return [vim.AuthorizationManager.UserPrivilegeResult(entity=ref, privileges=granted) for ref in args.entities]
