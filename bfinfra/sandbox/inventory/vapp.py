"""The values of a machine's vApp properties, as its guest reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed


def full_id(info: Any) -> str:
    """The class, id and instance in one: "class.id.instance", the key of a property mapping."""
    return ".".join(part for part in (info.classId, info.id, info.instanceId) if part)


def values_of(vm: Managed) -> dict[str, str]:
    """Return the values that the guest reads, by full id: the default where none is set; with passwords."""
    vapp = vm["config"].vAppConfig
    shown = {full_id(each): each.value or each.defaultValue or "" for each in vapp.property} if vapp else {}
    return {**shown, **vm.hidden.get("passwords", {})}
