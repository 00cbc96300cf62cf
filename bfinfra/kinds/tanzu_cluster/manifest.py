"""A cluster as v1alpha1 writes it, there and back: what is sent, and what the supervisor shows in the words of a site."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

from bfinfra.kinds.tanzu_cluster.spec import Nodes, Spec
from bfinfra.model.units import BINARY, Bytes, bytes_text

UNITS = ("Ti", "Gi", "Mi", "Ki", "")


def manifest(name: str, namespace: str, spec: Spec, authorities: Mapping[str, str]) -> dict[str, Any]:
    """The object to send. `authorities`: name → PEM."""
    (workers,) = spec.workers.values()
    settings = _without_empty({
        "network": _network(spec) | _trust(authorities),
        "storage": {"classes": list(spec.storage_classes), "defaultClass": spec.default_storage_class},
    })
    topology = {"controlPlane": _nodes(spec.control_plane, spec.control_plane.count), "workers": _nodes(workers, workers.count)}
    body = {"distribution": {"version": spec.version}, "topology": topology} | ({"settings": settings} if settings else {})
    return {
        "apiVersion": spec.api, "kind": "TanzuKubernetesCluster", "metadata": {"name": name, "namespace": namespace}, "spec": body,
    }  # fmt: skip


def wanted(spec: Spec, authorities: Mapping[str, str]) -> dict[str, Any]:
    """The fields that can be compared, as a site writes them; authorities as fingerprints of their content."""
    fields = {k: v for k, v in spec.applied().items() if k not in ("namespace", "api", "protect", "trust")}
    return fields | ({"trust": {name: fingerprint(pem) for name, pem in authorities.items()}} if authorities else {})


def view(body: Mapping[str, Any], pool: str) -> dict[str, Any]:
    """What a cluster's `spec` says, in the same words. `pool`: what the site calls the workers."""
    topology, settings = _at(body, "topology"), _at(body, "settings")
    network, storage = _at(settings, "network"), _at(settings, "storage")
    distribution = _at(body, "distribution")
    cas = [c for c in _at(network, "trust").get("additionalTrustedCAs") or () if isinstance(c, dict)]
    found: dict[str, Any] = _without_empty({
        "version": distribution.get("fullVersion") or distribution.get("version"),
        "control_plane": _view_nodes(_at(topology, "controlPlane")),
        "workers": {pool: _view_nodes(_at(topology, "workers"))},
        "network": {
            "cni": _at(network, "cni").get("name"), "pods": _at(network, "pods").get("cidrBlocks"),
            "services": _at(network, "services").get("cidrBlocks"), "service_domain": network.get("serviceDomain"),
        },
        "trust": {str(c.get("name")): fingerprint(_decoded(c.get("data"))) for c in cas},
        "storage_classes": storage.get("classes"), "default_storage_class": storage.get("defaultClass"),
    })
    return found


def fingerprint(pem: str) -> str:
    """SHA-256 of a PEM text, white space at its ends aside."""
    return "sha256:" + hashlib.sha256(pem.strip().encode()).hexdigest()


def _network(spec: Spec) -> dict[str, Any]:
    network = spec.network
    return {
        "cni": {"name": network.cni}, "pods": {"cidrBlocks": list(network.pods)}, "services": {"cidrBlocks": list(network.services)},
        "serviceDomain": network.service_domain,
    }  # fmt: skip


def _trust(authorities: Mapping[str, str]) -> dict[str, Any]:
    return {"trust": {"additionalTrustedCAs": [
        {"name": name, "data": base64.b64encode(pem.encode()).decode()} for name, pem in sorted(authorities.items())
    ]}}


def _nodes(nodes: Nodes, count: int) -> dict[str, Any]:
    volumes = [
        {"name": name, "mountPath": volume.mount_path, "capacity": {"storage": _quantity(volume.capacity)}}
        for name, volume in nodes.volumes.items()
    ]
    return {"count": count, "class": nodes.vm_class, "storageClass": nodes.storage_class} | ({"volumes": volumes} if volumes else {})


def _view_nodes(nodes: Mapping[str, Any]) -> dict[str, Any]:
    volumes = {
        str(v.get("name")): {"mount_path": v.get("mountPath"), "capacity": _bytes(_at(v, "capacity").get("storage"))}
        for v in nodes.get("volumes") or () if isinstance(v, dict)
    }
    return {"count": nodes.get("count"), "vm_class": nodes.get("class"), "storage_class": nodes.get("storageClass"), "volumes": volumes}


def _quantity(number: Bytes) -> str:
    return next(f"{number // BINARY[unit]}{unit}" for unit in UNITS if number % BINARY[unit] == 0)


def _bytes(quantity: Any) -> Any:
    """`50Gi` → `50GiB`; what isn't understood stays as it is and so differs."""
    text = str(quantity)
    number, unit = text.rstrip("KMGTi"), text[len(text.rstrip("KMGTi")):]
    return bytes_text(int(number) * BINARY[unit]) if number.isdigit() and unit in BINARY else quantity


def _decoded(data: Any) -> str:
    try:
        return base64.b64decode(str(data), validate=True).decode()
    except (binascii.Error, ValueError):
        return f"not base64: {data}"


def _at(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _without_empty(value: Any) -> Any:
    """Mappings and lists without what is None or empty; what wasn't written isn't sent."""
    if not isinstance(value, Mapping):
        return value
    kept = {name: _without_empty(item) for name, item in value.items()}
    return {name: item for name, item in kept.items() if item not in (None, {}, [], ())}
