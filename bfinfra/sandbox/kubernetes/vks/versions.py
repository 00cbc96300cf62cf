"""A Cluster between cluster.x-k8s.io/v1beta1, in which it is kept, and v1beta2."""

from __future__ import annotations

from bfinfra.sandbox.kubernetes.objects import Object, dig

STORED = "cluster.x-k8s.io/v1beta1"
LATER = "cluster.x-k8s.io/v1beta2"


def convert(thing: Object, version: str) -> Object:
    """The object in the other version."""
    if thing["apiVersion"] == version:
        return thing
    later = version == LATER
    found = {**thing, "apiVersion": version}
    if isinstance(dig(thing, "spec", "topology"), dict):
        found["spec"] = {**thing["spec"], "topology": _topology(thing["spec"]["topology"], later=later)}
    if "status" in thing:
        found["status"] = _later_status(thing["status"]) if later else _first_status(thing["status"])
    return found


def _topology(topology: Object, *, later: bool) -> Object:
    found = dict(topology)
    if later:
        names = {"name": found.pop("class", None), "namespace": found.pop("classNamespace", None)}
        found["classRef"] = {key: value for key, value in names.items() if value is not None}
    else:
        reference = found.pop("classRef", {})
        names = {"class": reference.get("name"), "classNamespace": reference.get("namespace")}
        found |= {key: value for key, value in names.items() if value is not None}
    if pools := dig(topology, "workers", "machineDeployments"):
        moved = [_later_pool(each) if later else _first_pool(each) for each in pools]
        found["workers"] = {**topology["workers"], "machineDeployments": moved}
    return found


def _later_pool(pool: Object) -> Object:
    found = dict(pool)
    strategy = found.pop("strategy", None)
    return found | ({"rollout": {"strategy": strategy}} if strategy else {})


def _first_pool(pool: Object) -> Object:
    found = dict(pool)
    strategy = dig(found.pop("rollout", None), "strategy")
    return found | ({"strategy": strategy} if strategy else {})


def _later_status(status: Object) -> Object:
    found = {key: value for key, value in status.items() if key not in ("conditions", "v1beta2", *READY)}
    deprecated = {"conditions": status["conditions"]} if "conditions" in status else {}
    initialization = {name: status[old] for old, name in READY.items() if old in status}
    return {
        **found,
        **status.get("v1beta2", {}),
        **({"initialization": initialization} if initialization else {}),
        **({"deprecated": {"v1beta1": deprecated}} if deprecated else {}),
    }


def _first_status(status: Object) -> Object:
    newer = {key: status[key] for key in ("conditions", "controlPlane", "workers") if key in status}
    found = {
        key: value for key, value in status.items() if key not in (*newer, "initialization", "deprecated")
    }
    older = dig(status, "deprecated", "v1beta1", "conditions")
    ready = {
        old: status["initialization"][name]
        for old, name in READY.items()
        if dig(status, "initialization", name)
    }
    return {
        **found,
        **ready,
        **({"conditions": older} if older else {}),
        **({"v1beta2": newer} if newer else {}),
    }


READY = {"infrastructureReady": "infrastructureProvisioned", "controlPlaneReady": "controlPlaneInitialized"}
"""Of the first version → of the later one."""
