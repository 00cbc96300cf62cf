"""Lists in other forms: the Table that `kubectl get` prints, and metadata without the rest."""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable, Sequence
from typing import Any

from bfinfra.sandbox.handler import Request
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of
from bfinfra.sandbox.kubernetes.registry import Resource

Column = tuple[str, Callable[[Object], Any]]


def wants_table(request: Request) -> bool:
    """True where the caller prefers a Table."""
    return "as=Table" in request.headers.get("accept", "").split(",")[0]


def wants_metadata(request: Request) -> bool:
    """True where the caller prefers a list without contents."""
    return "as=PartialObjectMetadataList" in request.headers.get("accept", "").split(",")[0]


def as_metadata(things: Sequence[Object], metadata: Object) -> Object:
    """The objects without their contents."""
    items = [
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": thing["metadata"]}
        for thing in things
    ]
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "items": items,
    }


def as_table(resource: Resource, things: Sequence[Object], now: float, metadata: Object) -> Object:
    """The objects as rows."""
    columns = _columns(resource)
    heads = [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]
    heads += [
        {"name": name, "type": "string", "format": "", "description": "", "priority": 0}
        for name, _ in columns
    ]
    heads += (
        []
        if _ages(columns)
        else [{"name": "Age", "type": "string", "format": "", "description": "", "priority": 0}]
    )
    rows = [
        {
            "cells": [
                name_of(thing),
                *(_cell(read(thing), now, name) for name, read in columns),
                *([] if _ages(columns) else [_age(thing, now)]),
            ],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": thing["metadata"],
            },
        }
        for thing in things
    ]
    versions = {
        key: metadata[key] for key in ("resourceVersion", "continue", "remainingItemCount") if key in metadata
    }
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": versions,
        "columnDefinitions": heads,
        "rows": rows,
    }


def _ages(columns: Sequence[Column]) -> bool:
    return any(name.lower() == "age" for name, _ in columns)


def _columns(resource: Resource) -> Sequence[Column]:
    if not resource.custom:
        return COLUMNS.get((resource.group, resource.kind), ())
    return [
        (each["name"], _json_path(each["jsonPath"])) for each in resource.columns if not each.get("priority")
    ]


def _json_path(path: str) -> Callable[[Object], Any]:
    steps = [step for step in path.strip("{}").lstrip(".").split(".") if step]

    def read(thing: Object) -> Any:
        if "[?(@" in path:
            wanted = path.split('"')[1] if '"' in path else path.split("'")[1]
            head, _, field = path.lstrip(".").partition("[?(@")[0], "", path.rpartition(".")[2]
            found = [each for each in dig(thing, *head.split("."), default=[]) if each.get("type") == wanted]
            return found[0].get(field, "") if found else ""
        return dig(thing, *steps, default="")

    return read


def _cell(value: object, now: float, name: str) -> Any:
    if name.lower() == "age" and isinstance(value, str):
        return _since(value, now)
    return value if isinstance(value, (int, str)) else str(value)


def _age(thing: Object, now: float) -> str:
    return _since(thing["metadata"].get("creationTimestamp", ""), now)


def _since(when: str, now: float) -> str:
    if not when:
        return "<unknown>"
    seconds = int(now - calendar.timegm(time.strptime(when, "%Y-%m-%dT%H:%M:%SZ")))
    for limit, unit, size in ((120, "s", 1), (7200, "m", 60), (172800, "h", 3600)):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def _ready(thing: Object) -> str:
    states = dig(thing, "status", "containerStatuses", default=[])
    return f"{sum(1 for each in states if each.get('ready'))}/{len(thing['spec'].get('containers', []))}"


def _pod_status(thing: Object) -> str:
    if thing["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for state in dig(thing, "status", "containerStatuses", default=[]):
        for kind in ("waiting", "terminated"):
            if dig(state, "state", kind, "reason"):
                return str(state["state"][kind]["reason"])
    return str(dig(thing, "status", "phase", default="Unknown"))


def _node_status(thing: Object) -> str:
    ready = any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in dig(thing, "status", "conditions", default=[])
    )
    return "Ready" if ready else "NotReady"


def _job_status(thing: Object) -> str:
    true = {
        each["type"] for each in dig(thing, "status", "conditions", default=[]) if each["status"] == "True"
    }
    return next((kind for kind in ("Complete", "Failed") if kind in true), "Running")


def _claim_state(thing: Object) -> str:
    states = {
        "deleted": thing["metadata"].get("deletionTimestamp"),
        "allocated": dig(thing, "status", "allocation"),
        "reserved": dig(thing, "status", "reservedFor"),
    }
    found = ",".join(state for state, is_so in states.items() if is_so)
    return found if states["allocated"] else ",".join(filter(None, (found, "pending")))


def _roles(thing: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    return (
        ",".join(
            sorted(
                key[len(prefix) :] for key in thing["metadata"].get("labels", {}) if key.startswith(prefix)
            )
        )
        or "<none>"
    )


def _count(*path: str) -> Callable[[Object], Any]:
    return lambda thing: dig(thing, *path, default=0)


def _text(*path: str) -> Callable[[Object], Any]:
    return lambda thing: dig(thing, *path, default="")


COLUMNS: dict[tuple[str, str], Sequence[Column]] = {
    ("", "Pod"): [
        ("Ready", _ready),
        ("Status", _pod_status),
        (
            "Restarts",
            lambda pod: sum(
                each.get("restartCount", 0) for each in dig(pod, "status", "containerStatuses", default=[])
            ),
        ),
    ],
    ("", "Namespace"): [("Status", _text("status", "phase"))],
    ("", "Node"): [
        ("Status", _node_status),
        ("Roles", _roles),
        ("Version", _text("status", "nodeInfo", "kubeletVersion")),
    ],
    ("", "Secret"): [("Type", _text("type")), ("Data", lambda thing: len(thing.get("data") or {}))],
    ("", "ConfigMap"): [("Data", lambda thing: len(thing.get("data") or {}))],
    ("", "PersistentVolumeClaim"): [
        ("Status", _text("status", "phase")),
        ("Volume", _text("spec", "volumeName")),
        ("Capacity", _text("status", "capacity", "storage")),
        ("StorageClass", _text("spec", "storageClassName")),
    ],
    ("apps", "Deployment"): [
        (
            "Ready",
            lambda thing: (
                f"{dig(thing, 'status', 'readyReplicas', default=0)}"
                f"/{dig(thing, 'spec', 'replicas', default=0)}"
            ),
        ),
        ("Up-to-date", _count("status", "updatedReplicas")),
        ("Available", _count("status", "availableReplicas")),
    ],
    ("apps", "DaemonSet"): [
        ("Desired", _count("status", "desiredNumberScheduled")),
        ("Current", _count("status", "currentNumberScheduled")),
        ("Ready", _count("status", "numberReady")),
    ],
    ("batch", "Job"): [
        ("Status", _job_status),
        (
            "Completions",
            lambda thing: (
                f"{dig(thing, 'status', 'succeeded', default=0)}"
                f"/{dig(thing, 'spec', 'completions', default=1)}"
            ),
        ),
    ],
    ("resource.k8s.io", "ResourceClaim"): [("State", _claim_state)],
    ("resource.k8s.io", "ResourceSlice"): [
        ("Node", _text("spec", "nodeName")),
        ("Driver", _text("spec", "driver")),
        ("Pool", _text("spec", "pool", "name")),
    ],
    ("storage.k8s.io", "StorageClass"): [
        ("Provisioner", _text("provisioner")),
        ("ReclaimPolicy", _text("reclaimPolicy")),
    ],
}
