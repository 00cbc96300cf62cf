"""The common part of a cluster's APIs: conversion of fields in both directions, quantities, networks,
authorities.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

from bfinfra.kinds.supervisor.base.quantities import quantity, size
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Nodes, Spec
from bfinfra.model.compare import Unknown

Fields = Mapping[str, Any]
Object = dict[str, Any]
Authority = str | Unknown
"""PEM, or Unknown for a registry that doesn't exist yet."""


def wanted(spec: Spec, authorities: Mapping[str, Authority]) -> Object:
    """The comparable fields, as a site writes them; authorities as fingerprints of their content."""
    fields = {k: v for k, v in spec.applied().items() if k not in ("namespace", "api", "protect", "trust")}
    return fields | (
        {
            "trust": {
                name: fingerprint(pem) if isinstance(pem, str) else pem for name, pem in authorities.items()
            }
        }
        if authorities
        else {}
    )


def settings(spec: Spec, authorities: Mapping[str, str]) -> Object:
    """`spec.settings` of a TanzuKubernetesCluster; empty if the supervisor chooses everything. `authorities`:
    name → PEM.
    """
    network, trust = (
        spec.network,
        [
            {"name": name, "data": base64.b64encode(pem.encode()).decode()}
            for name, pem in sorted(authorities.items())
        ],
    )
    found = without_empty(
        {
            "network": {
                "cni": {"name": network.cni},
                "pods": {"cidrBlocks": list(network.pods)},
                "services": {"cidrBlocks": list(network.services)},
                "serviceDomain": network.service_domain,
                "trust": {"additionalTrustedCAs": trust},
            },
            "storage": {"classes": list(spec.storage_classes), "defaultClass": spec.default_storage_class},
        }
    )
    return {"settings": found} if found else {}


def view_settings(body: Fields) -> Object:
    """The same fields as a site writes them."""
    network, storage = at(body, "settings", "network"), at(body, "settings", "storage")
    cas = [c for c in at(network, "trust").get("additionalTrustedCAs") or () if isinstance(c, dict)]
    return {
        "network": {
            "cni": at(network, "cni").get("name"),
            "pods": at(network, "pods").get("cidrBlocks"),
            "services": at(network, "services").get("cidrBlocks"),
            "service_domain": network.get("serviceDomain"),
        },
        "trust": {str(c.get("name")): fingerprint(_decoded(c.get("data"))) for c in cas},
        "storage_classes": storage.get("classes"),
        "default_storage_class": storage.get("defaultClass"),
    }


def volumes(nodes: Nodes, *, classed: bool = False) -> list[Object]:
    """The disks of nodes; `classed`: each with its storage class."""
    own = {"storageClass": nodes.storage_class} if classed else {}
    return [
        {
            "name": name,
            "mountPath": volume.mount_path,
            "capacity": {"storage": quantity(volume.capacity)},
            **own,
        }
        for name, volume in nodes.volumes.items()
    ]


def view_nodes(count: Any, vm_class: Any, storage_class: Any, disks: Any) -> Object:
    """Nodes as a site writes them."""
    found = {
        str(v.get("name")): {
            "mount_path": v.get("mountPath"),
            "capacity": size(at(v, "capacity").get("storage")),
        }
        for v in disks or ()
        if isinstance(v, dict)
    }
    return {"count": count, "vm_class": vm_class, "storage_class": storage_class, "volumes": found}


def fingerprint(pem: str) -> str:
    """SHA-256 of a PEM text without white space at its ends."""
    return "sha256:" + hashlib.sha256(pem.strip().encode()).hexdigest()


def at(value: Fields, *path: str) -> Fields:
    """The mapping under a path; empty if there is none."""
    for name in path:
        inner = value.get(name)
        value = inner if isinstance(inner, Mapping) else {}
    return value


def without_empty(value: object) -> Any:
    """The value without mappings, lists and entries that are None or empty: fields that aren't written are
    not sent.
    """
    if not isinstance(value, Mapping):
        return value
    kept = {name: without_empty(item) for name, item in value.items()}
    return {name: item for name, item in kept.items() if item not in (None, {}, [], ())}


def _decoded(data: object) -> str:
    try:
        return base64.b64decode(str(data), validate=True).decode()
    except (binascii.Error, ValueError):
        return f"not base64: {data}"
