"""Rights on vCenter as a PowerShell script: roles and permissions by the cmdlets of VMware PowerCLI."""

from __future__ import annotations

from bfinfra.formats.powershell import quoted, unwild
from bfinfra.model.rights import DATACENTER_FOLDERS, READ, Entity, Rights
from bfinfra.render.privileges import READ_ONLY, role_names

FINDERS = {
    "Datastore": "Get-Datastore",
    "HostSystem": "Get-VMHost",
    "Network": "Get-VirtualNetwork",
    "ResourcePool": "Get-ResourcePool",
}
ROOT = "Get-VIObjectByVIView -MORef (Get-View ServiceInstance).Content.RootFolder"


def powercli(rights: Rights, account: str) -> str:
    """A role for each set of privileges, then one permission for each object. An administrator who is
    connected to the vCenter runs it.
    """
    named = role_names(rights)
    lines = ["$ErrorActionPreference = 'Stop'"]
    for names, role in named.items():
        if role != READ_ONLY:
            ids = ", ".join(quoted(name) for name in names if name not in READ)
            lines.append(f"New-VIRole -Name {quoted(role)} -Privilege (Get-VIPrivilege -Id {ids}) | Out-Null")
    for entity, names in rights.entities.items():
        to = f"-Principal {quoted(_principal(account))} -Role {quoted(named[names])}"
        propagate = f"-Propagate:${str(entity.propagate).lower()}"
        lines.append(f"{_found(entity)} | New-VIPermission {to} {propagate}")
    return "\n".join(lines)


def _name(text: str) -> str:
    """For a parameter that takes wildcards: only `*` is one."""
    return quoted(text if text == "*" else unwild(text))


def _principal(account: str) -> str:
    """The account with its domain first; other names would be searched among local accounts, as wildcards."""
    name, at, domain = account.rpartition("@")
    return f"{domain}\\{name}" if at else account


def _found(entity: Entity) -> str:
    """The command that finds the object of an inventory path, or all objects that a `*` stands for."""
    _, *names = entity.path.split("/")
    if names == [""]:
        return ROOT
    root = next((at for at, name in enumerate(names) if at and name in DATACENTER_FOLDERS), len(names))
    center = f"Get-Datacenter -Name {_name(names[root - 1])}"
    hosts = names[root + 1 :] if names[root : root + 1] == ["host"] else []
    above = {"HostSystem": -2, "ResourcePool": hosts.index("Resources") - 1 if "Resources" in hosts else -2}
    home = hosts[above.get(entity.type, -1)] if hosts else ""
    cluster = f"Get-Cluster -Location ({center}) -Name {_name(home)}" if home else ""
    match entity.type:
        case "Datacenter":
            return center
        case "ClusterComputeResource":
            return cluster
        case "Folder":
            return _folder(center, names[root:])
        case "HostSystem" if home == "*":
            place, finder = center, "Get-VMHost"  # in a cluster or alone
        case _:
            place, finder = (cluster or center), FINDERS[entity.type]
    return f"{finder} -Location ({place}) -Name {_name(names[-1])}"


def _folder(datacenter: str, names: list[str]) -> str:
    """The path from the datacenter's own folder down, as the same name may exist in several places."""
    found = datacenter
    for name in names:
        found = f"Get-Folder -NoRecursion -Location ({found}) -Name {_name(name)}"
    return found
