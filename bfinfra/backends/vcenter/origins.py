"""Where a VM comes from: template, extension, appliance, and its vApp properties."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.tree import texts
from bfinfra.backends.vcenter.vm import Origin

ORIGIN = ("config.template", "config.managedBy", "config.vAppConfig.product", "config.vAppConfig.property")


def origin(row: Row) -> Origin:
    """A VM with what shows its origin, from a row with those properties."""
    owner = row["config.managedBy"]
    products = [*map(texts, row["config.vAppConfig.product"] or ())]
    declared = {full_key(each): each for each in map(texts, row["config.vAppConfig.property"] or ())}
    return Origin(
        row.moid,
        row.name,
        template=bool(row["config.template"]),
        owner=texts(owner).get("extensionKey", "") if owner is not None else "",
        product=next((f"{each.get('name', '')} {each.get('version', '')}".strip() for each in products), ""),
        labels={key: each.get("label", "") for key, each in declared.items()},
        defaults={key: each.get("defaultValue", "") for key, each in declared.items()},
        passwords=frozenset(key for key, each in declared.items() if "password" in each.get("type", "")),
    )


def full_key(info: Mapping[str, str]) -> str:
    """`class.id.instance` of a vApp property, without unset parts."""
    return ".".join(filter(None, map(info.get, ("classId", "id", "instanceId"))))
