"""UserDirectory: the users and groups of the world's domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.dispatch import Call, method

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

KIND = "vim.UserDirectory"


@method(KIND, "RetrieveUserGroups", writes=False)
def search(call: Call, this: Managed, args: Any) -> Any:
    """Search one domain, which must be named: the appliance itself has no accounts. Raises NotFound for an
    unknown domain, group or user.
    """
    call.need("System.View", this)
    everybody = _everybody(call.inventory)
    domain, text = (args.domain or "").lower(), args.searchStr.lower()
    if domain and domain not in {each[1].lower() for each in everybody}:
        raise vim.fault.NotFound(msg=f"The domain '{args.domain}' was not found.")
    known = {(name.lower(), group) for name, where, group, _ in everybody if where.lower() == domain}
    for wanted, group in ((args.belongsToGroup, True), (args.belongsToUser, False)):
        if wanted and (wanted.lower(), group) not in known:
            raise vim.fault.NotFound(msg=f"'{wanted}' was not found.")
    return [
        vim.UserSearchResult(principal=name, fullName=f"{name} {where}", group=group)
        for name, where, group, groups in everybody
        if where.lower() == domain
        and (args.findGroups if group else args.findUsers)
        and (name.lower() == text if args.exactMatch else text in name.lower())
        and (not args.belongsToGroup or f"{args.belongsToGroup}@{domain}".lower() in groups)
        and (
            not args.belongsToUser
            or (
                group
                and f"{name}@{where}".lower() in _groups_of(call.inventory, f"{args.belongsToUser}@{domain}")
            )
        )
    ]


@computed(KIND, "domainList")
def _domains(inventory: Inventory, _: Managed) -> Any:
    return sorted({where for _, where, _, _ in _everybody(inventory)})


def _everybody(inventory: Inventory) -> list[tuple[str, str, bool, tuple[str, ...]]]:
    """Name, domain, whether it is a group, and the groups that it is in."""
    found = [(user.name, False, user.groups) for user in inventory.world.users] + [
        (name, True, ()) for name in inventory.world.groups
    ]
    return [(*_parts(name), group, tuple(each.lower() for each in groups)) for name, group, groups in found]


def _groups_of(inventory: Inventory, user: str) -> set[str]:
    return {
        group.lower()
        for each in inventory.world.users
        if each.name.lower() == user.lower()
        for group in each.groups
    }


def _parts(name: str) -> tuple[str, str]:
    own, _, domain = name.partition("@")
    return own, domain
