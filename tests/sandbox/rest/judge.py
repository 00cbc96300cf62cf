"""The type metadata of the official SDK as a judge of REST bodies: every field there, none unknown, every
type right.
"""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the SDK reads its own resources in an old way
    from com.vmware import cis_client, content_client, vcenter_client
    from com.vmware.cis import tagging_client
    from com.vmware.content import library_client
    from com.vmware.content.library import item_client
    from com.vmware.content.library.item import updatesession_client
    from com.vmware.esx.settings import clusters_client, depots_client
    from com.vmware.esx.settings.clusters import software_client
    from com.vmware.esx.settings.clusters.software.drafts import software_client as draft_client
    from com.vmware.vcenter import (
        consumption_domains_client,
        namespace_management_client,
        namespaces_client,
        ovf_client,
        storage_client,
        vm_template_client,
    )
    from com.vmware.vcenter.consumption_domains.zones import cluster_client as zone_cluster_client
    from com.vmware.vcenter.content import registries_client
    from com.vmware.vcenter.content.registries import harbor_client
    from com.vmware.vcenter.namespace_management import supervisors_client
    from com.vmware.vcenter.namespace_management.supervisors import networks_client as edges_client
    from com.vmware.vcenter.namespaces import user_client

    try:
        from com.vmware.vcenter.namespaces import instances_client
    except ImportError:  # the types of 8.0.3 have no zones of namespaces
        instances_client = None
    from vmware.vapi.data import definition as vapi

__all__ = [
    "cis_client",
    "clusters_client",
    "consumption_domains_client",
    "content_client",
    "depots_client",
    "draft_client",
    "edges_client",
    "harbor_client",
    "instances_client",
    "item_client",
    "library_client",
    "misfits",
    "namespace_management_client",
    "namespaces_client",
    "ovf_client",
    "registries_client",
    "software_client",
    "storage_client",
    "supervisors_client",
    "tagging_client",
    "updatesession_client",
    "user_client",
    "vcenter_client",
    "vm_template_client",
    "zone_cluster_client",
]

SCALARS = {
    vapi.StringDefinition: str,
    vapi.IntegerDefinition: int,
    vapi.BooleanDefinition: bool,
    vapi.SecretDefinition: str,
    vapi.DoubleDefinition: float,
}


def misfits(kind: Any, value: Any, at: str = "$") -> list[str]:
    """What is wrong with a JSON value by a definition, or by a class of the SDK; nothing where it fits."""
    kind = kind.get_binding_type().definition if hasattr(kind, "get_binding_type") else kind
    if isinstance(kind, vapi.OptionalDefinition):
        return [] if value is None else misfits(kind.element_type, value, at)
    if isinstance(kind, vapi.ListDefinition) and getattr(kind.element_type, "name", "") == "map-entry":
        return [
            wrong
            for key, each in value.items()
            for wrong in misfits(kind.element_type.get_field("value"), each, f"{at}[{key}]")
        ]
    if isinstance(kind, vapi.ListDefinition):
        return (
            [
                wrong
                for n, each in enumerate(value)
                for wrong in misfits(kind.element_type, each, f"{at}[{n}]")
            ]
            if isinstance(value, list)
            else [f"{at}: no list"]
        )
    if isinstance(kind, vapi.StructDefinition):
        return _structure(kind, value, at)
    if isinstance(kind, vapi.OpaqueDefinition | vapi.AnyErrorDefinition):
        return []
    if isinstance(kind, vapi.DynamicStructDefinition):
        return [] if isinstance(value, dict) else [f"{at}: no structure"]
    wanted = SCALARS[type(kind)]
    return (
        []
        if isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
        else [f"{at}: {value!r} is no {wanted.__name__}"]
    )


def _structure(kind: Any, value: Any, at: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: no structure"]
    fields = {name: kind.get_field(name) for name in kind.get_field_names()}
    wrong = [f"{at}.{name}: unknown" for name in value if name not in fields]
    wrong += [
        f"{at}.{name}: missing"
        for name, each in fields.items()
        if name not in value and not isinstance(each, vapi.OptionalDefinition)
    ]
    return wrong + [
        each
        for name in value
        if name in fields
        for each in misfits(fields[name], value[name], f"{at}.{name}")
    ]
