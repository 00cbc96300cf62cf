"""vApp properties of a machine. Values of password type can be written and never read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vapp import full_id, values_of
from bfinfra.sandbox.inventory.vmtypes import fields, vim, vmodl

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed


def change_vapp(vm: Managed, spec: Any) -> None:
    """Apply `spec.vAppConfig`. InvalidArgument for a property that isn't there or is there already."""
    config = vm["config"]
    if spec.vAppConfigRemoved:
        config.vAppConfig = None
    wanted = spec.vAppConfig
    if wanted is None:
        return
    vapp = config.vAppConfig or vim.vApp.VmConfigInfo(
        ipAssignment=vim.vApp.IPAssignmentInfo(), installBootRequired=False, installBootStopDelay=0
    )
    vapp.property = changed(
        vapp.property, wanted.property or [], "property", lambda old, new: merge_property(vm, old, new)
    )
    vapp.product = changed(vapp.product, wanted.product or [], "product", merge)
    vapp.eula = wanted.eula or vapp.eula
    vapp.ovfEnvironmentTransport = wanted.ovfEnvironmentTransport or vapp.ovfEnvironmentTransport
    for name in ("ipAssignment", "installBootRequired", "installBootStopDelay"):
        if getattr(wanted, name) is not None:
            setattr(vapp, name, getattr(wanted, name))
    config.vAppConfig = vapp


def changed(old: Any, specs: Any, what: str, join: Any) -> list[Any]:
    """The list after add, edit and remove by key."""
    found = {each.key: each for each in old}
    for each in specs:
        key = each.removeKey if each.operation == "remove" and each.removeKey is not None else each.info.key
        if (each.operation == "add") == (key in found):
            why = "exists already" if key in found else "does not exist"
            raise vmodl.fault.InvalidArgument(
                invalidProperty=f"vAppConfig.{what}",
                msg=f"A specified parameter was not correct: the {what} {key} {why}",
            )
        if each.operation == "remove":
            del found[key]
        else:
            found[key] = join(found.get(key), each.info)
    return list(found.values())


def merge(old: Any, new: Any) -> Any:
    """The fields that the new one sets, over the old one's."""
    if old is None:
        return new
    for info in fields(new):
        if getattr(new, info.name) is not None:
            setattr(old, info.name, getattr(new, info.name))
    return old


def merge_property(vm: Managed, old: object, new: object) -> Any:
    """Merge a property; a password's value is stored where no client reads it."""
    found = merge(old, new)
    if (found.type or "").startswith("password"):
        values = vm.hidden.setdefault("passwords", {})
        for name in ("value", "defaultValue"):
            if getattr(found, name):
                values[full_id(found)] = getattr(found, name)
                setattr(found, name, "")
    return found


def check_configured(vm: Managed) -> None:
    """UnconfiguredPropertyValue for the first property that must have a text and has none."""
    vapp, values = vm["config"].vAppConfig, values_of(vm)
    for each in vapp.property if vapp else ():
        if re.match(r"(string|password)\([1-9]", each.type or "") and not values.get(full_id(each)):
            raise vim.fault.UnconfiguredPropertyValue(
                id=full_id(each),
                category=each.category or "",
                label=each.label or "",
                type=each.type,
                value="",
                msg=f"Property '{each.label or full_id(each)}' must be configured for the VM to power on.",
            )
