"""A TanzuKubernetesCluster between its API versions. It is kept in the form of v1alpha1; an annotation has
what that can't express of pools.

The first pool is v1alpha1's `workers`: to scale them scales that pool, in whichever version the cluster was
created.
"""

from __future__ import annotations

import json
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object, dig

NAMES = {
    "count": "replicas",
    "class": "vmClass",
    "storageClass": "storageClass",
    "volumes": "volumes",
}  # v1alpha1 → later
STORED = "run.tanzu.vmware.com/v1alpha1"
SAVED = "cluster.x-k8s.io/conversion-data"
"""The annotation of the first version that holds the pools as a later one wrote them."""


def convert(thing: Object, version: str) -> Object:
    """The object in another version. From the first to a later one, or back; the later ones are alike."""
    if version != STORED and thing["apiVersion"] != STORED:
        return {**thing, "apiVersion": version}
    return {**thing, "apiVersion": version, **(_first(thing) if version == STORED else _later(thing))}


def pools_of(thing: Object) -> list[Object]:
    """The pools of workers of an object as it is kept, in the words of the later versions."""
    own = _renamed(thing["spec"]["topology"]["workers"], NAMES)
    held = dig(thing, "metadata", "annotations", SAVED)
    first, *more = json.loads(held) if held else [{"name": "workers"}]
    return [{**{name: value for name, value in first.items() if name not in NAMES.values()}, **own}, *more]


def _later(thing: Object) -> Object:
    spec, topology = thing["spec"], thing["spec"]["topology"]
    release = {
        "tkr": {
            "reference": {"name": dig(spec, "distribution", "fullVersion", default="").replace("+", "---")}
        }
    }
    pools = [{**release, **pool} for pool in pools_of(thing)]
    made: Object = {
        "topology": {
            "controlPlane": {**_renamed(topology["controlPlane"], NAMES), **release},
            "nodePools": pools,
        }
    }
    made |= {"settings": spec["settings"]} if "settings" in spec else {}
    notes = {
        name: value for name, value in (thing["metadata"].get("annotations") or {}).items() if name != SAVED
    }
    metadata = {
        **{name: value for name, value in thing["metadata"].items() if name != "annotations"},
        **({"annotations": notes} if notes else {}),
    }
    return {
        "metadata": metadata,
        "spec": made,
        **({"status": _later_status(thing)} if "status" in thing else {}),
    }


def _later_status(thing: Object) -> Object:
    status = thing["status"]
    workers = [name for name in status.get("nodeStatus", {}) if "-control-plane-" not in name]
    found = {
        "phase": status.get("phase"),
        "conditions": status.get("conditions"),
        "apiEndpoints": dig(status, "clusterApiStatus", "apiEndpoints"),
    }
    addons = [
        {"name": each["name"], "type": kind, "version": each["version"]}
        for kind, each in status.get("addons", {}).items()
    ]
    return {
        **{name: each for name, each in found.items() if each is not None},
        "totalWorkerReplicas": len(workers),
        "addons": addons,
    }


def _first(thing: Object) -> Object:
    """Fill in the parts of the status that the later versions don't have, as the controller does."""
    spec, topology = thing["spec"], thing["spec"].get("topology", {})
    back = {later: name for name, later in NAMES.items()}
    release = str(dig(topology, "controlPlane", "tkr", "reference", "name", default="")).replace("---", "+")
    pools = topology.get("nodePools") or []
    first = _renamed(pools[0], back) if pools else {}
    made: Object = {
        "topology": {"controlPlane": _renamed(topology.get("controlPlane", {}), back), "workers": first},
        "distribution": {"fullVersion": release},
    }
    made |= {"settings": spec["settings"]} if "settings" in spec else {}
    status = dict(thing.get("status", {}))
    endpoints = status.pop("apiEndpoints", None)
    for name in ("totalWorkerReplicas", "addons"):
        status.pop(name, None)
    status |= {"clusterApiStatus": {"apiEndpoints": endpoints, "phase": "Provisioned"}} if endpoints else {}
    notes = {
        **(thing["metadata"].get("annotations") or {}),
        **({SAVED: json.dumps([_without(each, release) for each in pools])} if pools else {}),
    }
    return {
        "metadata": {**thing["metadata"], "annotations": notes},
        "spec": made,
        **({"status": status} if status else {}),
    }


def _without(pool: Object, release: str) -> Object:
    """A pool without the release that it has from the control plane: both are upgraded together."""
    same = str(dig(pool, "tkr", "reference", "name", default="")).replace("---", "+") == release
    return {name: value for name, value in pool.items() if name != "tkr" or not same}


def _renamed(nodes: Any, names: dict[str, str]) -> Object:
    return {later: nodes[name] for name, later in names.items() if name in nodes}
