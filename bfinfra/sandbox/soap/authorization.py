"""AuthorizationManager: roles, permissions and privilege checks."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory import permissions as rights
from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.permissions import ADMIN, FIRST_OWN, NO_ACCESS, READ, READ_ONLY
from bfinfra.sandbox.inventory.vmtypes import moid, support, vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method, shown_name

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

KIND = "vim.AuthorizationManager"
KINDS = (
    vim.Folder,
    vim.Datacenter,
    vim.ClusterComputeResource,
    vim.HostSystem,
    vim.VirtualMachine,
    vim.ResourcePool,
    vim.Datastore,
    vim.Network,
    vim.CustomFieldsManager,
    vim.OvfManager,
    vim.AuthorizationManager,
    vim.SessionManager,
    vim.host.PciPassthruSystem,
    vim.host.NetworkSystem,
    vim.host.FirewallSystem,
    vim.host.GraphicsManager,
    vim.host.ImageConfigManager,
    vim.DistributedVirtualSwitch,
    vim.dvs.DistributedVirtualPortgroup,
)
# privileges that no method's metadata names: they depend on the arguments, or are REST's
CHECKED = (
    *(
        f"ContentLibrary.{part}"
        for part in (
            "CreateLocalLibrary",
            "CreateSubscribedLibrary",
            "UpdateLibrary",
            "UpdateLocalLibrary",
            "UpdateSubscribedLibrary",
            "DeleteLibrary",
            "DeleteLocalLibrary",
            "DeleteSubscribedLibrary",
            "SyncLibrary",
            "ManageClusterRegistryResource",
            "UpdateSession",
            "AddLibraryItem",
            "UpdateLibraryItem",
            "DeleteLibraryItem",
        )
    ),
    *(f"DVSwitch.{part}" for part in ("Modify", "Delete", "HostOp", "PortSetting")),
    "Datacenter.Rename",
    "Datastore.Rename",
    "DVPortgroup.Modify",
    "DVPortgroup.Delete",
    "Folder.Rename",
    "Host.Config.Network",
    "Host.Inventory.RenameCluster",
    "Host.Config.AdvancedConfig",
    *(
        f"InventoryService.Tagging.{what}"
        for what in (
            "AttachTag",
            "CreateCategory",
            "CreateTag",
            "DeleteCategory",
            "DeleteTag",
            "EditCategory",
            "EditTag",
        )
    ),
    "Namespaces.Configure",
    "Namespaces.Manage",
    "Network.Assign",
    "Resource.AssignVMToPool",
    *(f"Resource.{verb}Pool" for verb in ("Create", "Delete", "Edit", "Move", "Rename")),
    "StorageProfile.View",
    "StorageProfile.Update",
    "VApp.ApplicationConfig",
    "VcIntegrity.lifecycleDepots.Delete",
    *(
        f"VcIntegrity.lifecycle{part}.{way}"
        for part in ("Settings", "SoftwareRemediation", "SoftwareSpecification")
        for way in ("Read", "Write")
    ),
    *(f"VirtualMachine.Provisioning.{part}" for part in ("Clone", "DeployTemplate")),
    "VirtualMachine.Inventory.CreateFromExisting",
    "VirtualMachine.Inventory.Create",
    "VirtualMachine.Inventory.Delete",
    "VirtualMachine.Inventory.Move",
    "VirtualMachineClasses.Manage",
    "Resource.HotMigrate",
    *(
        f"VirtualMachine.Config.{part}"
        for part in (
            "AddNewDisk",
            "AddExistingDisk",
            "RemoveDisk",
            "DiskExtend",
            "AddRemoveDevice",
            "EditDevice",
            "AdvancedConfig",
            "Annotation",
            "CPUCount",
            "Memory",
            "Resource",
            "Rename",
            "Settings",
            "ManagedBy",
            "RawDevice",
        )
    ),
)


@functools.cache
def privilege_ids() -> tuple[str, ...]:
    """Every privilege that the API's methods name, from the metadata of the types that the sandbox has."""
    found = {*READ, *CHECKED}
    for kind in KINDS:
        for info in kind._GetMethodList():  # noqa: SLF001 - pyVmomi's public name
            found |= {info.privId, *(param.privId for param in info.params)} - {None}
    return tuple(sorted(found))


def privileges_of(inventory: Inventory, number: int) -> list[str]:
    """A role's."""
    own = {ADMIN: privilege_ids(), READ_ONLY: READ, NO_ACCESS: ()}
    return list(own[number] if number in own else rights.roles(inventory)[str(number)]["privileges"])


@computed(KIND, "roleList")
def _roles(inventory: Inventory, _: Managed) -> Any:
    known = {ADMIN: "Admin", READ_ONLY: "ReadOnly", NO_ACCESS: "NoAccess"} | {
        int(number): each["name"] for number, each in rights.roles(inventory).items()
    }
    return [
        vim.AuthorizationManager.Role(
            roleId=number,
            system=number < 0,
            name=name,
            info=vim.Description(label=name, summary=name),
            privilege=privileges_of(inventory, number),
        )
        for number, name in known.items()
    ]


@computed(KIND, "privilegeList")
def _privileges(_: Inventory, __: Managed) -> Any:
    return [
        vim.AuthorizationManager.Privilege(
            privId=each, onParent=False, name=each.rpartition(".")[2], privGroupName=each.rpartition(".")[0]
        )
        for each in privilege_ids()
    ]


@computed(KIND, "description")
def _description(_: Inventory, __: Managed) -> Any:
    def described(keys: Iterable[str]) -> list[Any]:
        return [
            vim.ElementDescription(key=key, label=key.rpartition(".")[2], summary=key) for key in sorted(keys)
        ]

    privileges = privilege_ids()
    return vim.AuthorizationDescription(
        privilege=described(privileges),
        privilegeGroup=described({each.rpartition(".")[0] for each in privileges}),
    )


def shown(inventory: Inventory, each: rights.Permission) -> Any:
    """A permission as the API has it."""
    return vim.AuthorizationManager.Permission(
        entity=inventory.objects[each["entity"]].ref,
        principal=shown_name(each["principal"]),
        group=each["group"],
        roleId=each["role"],
        propagate=each["propagate"],
    )


@method(KIND, "RetrieveAllPermissions", writes=False)
def all_permissions(call: Call, _: Managed, __: object) -> Any:
    """Every permission."""
    return [
        shown(call.inventory, each)
        for each in rights.permissions(call.inventory)
        if each["entity"] in call.inventory.objects
    ]


@method(KIND, "RetrieveEntityPermissions", writes=False)
def entity_permissions(call: Call, _: Managed, args: Any) -> Any:
    """An entity's permissions; inherited ones where asked for."""
    above = [each.moid for each in call.inventory.ancestors(call.inventory.get(args.entity))]
    places = {above[0]} | (set(above[1:]) if args.inherited else set())
    found = [
        each
        for each in rights.permissions(call.inventory)
        if each["entity"] in places and (each["entity"] == above[0] or each["propagate"])
    ]
    return [shown(call.inventory, each) for each in found]


@method(KIND, "AddAuthorizationRole")
def add_role(call: Call, this: Managed, args: Any) -> Any:
    """A new role; what every role has is added. AlreadyExists, InvalidArgument for a privilege that there
    isn't.
    """
    known = rights.roles(call.inventory)
    if args.name in ("Admin", "ReadOnly", *(each["name"] for each in known.values())):
        raise vim.fault.AlreadyExists(
            name=args.name, msg=f"The specified key, name, or identifier '{args.name}' already exists."
        )
    number = max([FIRST_OWN, *map(int, known)]) + 1
    known[str(number)] = {"name": args.name, "privileges": checked(args.privIds)}
    call.inventory.touch(this)
    return number


@method(KIND, "UpdateAuthorizationRole")
def update_role(call: Call, this: Managed, args: Any) -> None:
    """Another name, other privileges."""
    own_role(call, args.roleId).update(name=args.newName, privileges=checked(args.privIds))
    call.inventory.touch(this)


@method(KIND, "RemoveAuthorizationRole")
def remove_role(call: Call, this: Managed, args: Any) -> None:
    """Delete a role, and its permissions. RemoveFailed where it is used and that was not wanted."""
    own_role(call, args.roleId)
    held = this.hidden["permissions"]
    if args.failIfUsed and any(each["role"] == args.roleId for each in held):
        raise vim.fault.RemoveFailed(msg="The role is used by permissions.")
    this.hidden["permissions"] = [each for each in held if each["role"] != args.roleId]
    del this.hidden["roles"][str(args.roleId)]
    call.inventory.touch(this)


@method(KIND, "SetEntityPermissions")
def set_permissions(call: Call, this: Managed, args: Any) -> None:
    """Give permissions on an entity; a principal's earlier one there is replaced. UserNotFound, NotFound for
    a role that there isn't, InvalidArgument for an object that has its parent's.
    """
    entity = call.inventory.get(args.entity)
    if rights.owner(call.inventory, entity) is not entity:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="entity", msg="A specified parameter was not correct: entity"
        )
    for each in args.permission or []:
        if each.roleId not in (ADMIN, READ_ONLY, NO_ACCESS):
            own_role(call, each.roleId)
        name = principal(call, each.principal, group=each.group)
        made = rights.permission(
            moid(args.entity), name, each.roleId, group=each.group, propagate=each.propagate
        )
        others = [
            old
            for old in this.hidden["permissions"]
            if (old["entity"], old["principal"], old["group"]) != (made["entity"], name, each.group)
        ]
        this.hidden["permissions"] = [*others, made]
    call.inventory.touch(this)


@method(KIND, "RemoveEntityPermission")
def remove_permission(call: Call, this: Managed, args: Any) -> None:
    """Take a principal's permission on an entity away. NotFound."""
    name, held = principal(call, args.user, group=args.isGroup), this.hidden["permissions"]
    kept = [
        old
        for old in held
        if (old["entity"], old["principal"], old["group"]) != (moid(args.entity), name, args.isGroup)
    ]
    if len(kept) == len(held):
        raise vim.fault.NotFound(msg=f"'{args.user}' has no permission there.")
    this.hidden["permissions"] = kept
    call.inventory.touch(this)


def checked(privileges: Any) -> list[str]:
    """With what every role has. InvalidArgument."""
    unknown = sorted(set(privileges or []) - set(privilege_ids()))
    if unknown:
        raise vim.fault.InvalidName(
            name=unknown[0], msg=f"A specified parameter was not correct: privIds ({unknown[0]})"
        )
    return sorted({*READ, *(privileges or [])})


def own_role(call: Call, number: int) -> dict[str, Any]:
    """A role that was created through the API. Raises NotFound."""
    found = rights.roles(call.inventory).get(str(number))
    if found is None:
        raise vim.fault.NotFound(msg=f"There is no role {number} that can be changed.")
    return found


def principal(call: Call, name: str, *, group: bool) -> str:
    """Name@domain of a user or group of the world, by either form of the name. UserNotFound."""
    known = call.inventory.world.groups if group else [user.name for user in call.inventory.world.users]
    for each in known:
        if name.lower() in (each.lower(), shown_name(each).lower()):
            return str(each)
    raise vim.fault.UserNotFound(
        principal=name, unresolved=True, msg=f"The user or group '{name}' was not found."
    )


def user_named(call: Call, name: str) -> Any:
    """The world's user, by either form of the name. UserNotFound."""
    found = principal(call, name, group=False)
    return next(user for user in call.inventory.world.users if user.name == found)


@method(KIND, "HasUserPrivilegeOnEntities", writes=False)
def has_user(call: Call, _: Managed, args: Any) -> Any:
    """For each entity, which of the privileges the user has."""
    user, availability = user_named(call, args.userName), vim.AuthorizationManager.PrivilegeAvailability
    return [
        vim.AuthorizationManager.EntityPrivilege(
            entity=ref,
            privAvailability=[
                availability(
                    privId=each, isGranted=rights.holds(call.inventory, user, each, call.inventory.get(ref))
                )
                for each in args.privId
            ],
        )
        for ref in args.entities
    ]


@method(KIND, "HasPrivilegeOnEntities", writes=False)
def has_session(call: Call, this: Managed, args: Any) -> Any:
    """The same for the user of a session."""
    session = next((each for each in call.sessions.all() if each.key == args.sessionId), None)
    if session is None:
        raise vim.fault.NotAuthenticated(object=this.ref, privilegeId="System.View")
    args.userName, args.entities = session.user.name, args.entity
    return has_user(call, this, args)


@method(KIND, "HasPrivilegeOnEntity", writes=False)
def has_one(call: Call, this: Managed, args: Any) -> Any:
    """The same for one entity: one answer a privilege."""
    args.entity = [args.entity]
    return [each.isGranted for each in has_session(call, this, args)[0].privAvailability]


@method(KIND, "FetchUserPrivilegeOnEntities", writes=False)
def fetch_user(call: Call, _: Managed, args: Any) -> Any:
    """For each entity, all that the user has."""
    user, inventory = user_named(call, args.userName), call.inventory

    def all_of(ref: object) -> Any:
        numbers = rights.effective(inventory, user, inventory.get(ref))
        return support.GetVmodlType("string[]")(
            sorted({each for number in numbers for each in privileges_of(inventory, number)})
        )

    return [
        vim.AuthorizationManager.UserPrivilegeResult(entity=ref, privileges=all_of(ref))
        for ref in args.entities
    ]
