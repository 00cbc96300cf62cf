"""The live state of a workload: its objects, their pods, and the record of what ran."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from bfinfra.backends.kubernetes.marks import mark_of, notes
from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.pods import ends, job_of, job_phase, pulling, ran, stuck, unplaced
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.kinds.cluster_locator import CLUSTERS, Cluster
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

Object = dict[str, Any]


@dataclass(frozen=True)
class Thing:
    """One object. `phase`: running, finished, failed, stuck, pulling or waiting; `why`: more about it."""

    api_version: str
    kind: str
    name: str
    mark: Mark | None
    digest: str
    going: bool
    phase: str
    why: str = ""
    request: str = ""
    """The size that a claim asks for."""
    pods: tuple[str, ...] = ()
    ran: bool = True
    """Whether any of its containers has ever started."""
    content: Object = field(default_factory=dict, repr=False)
    """The live object."""


@dataclass(frozen=True)
class Record:
    """The ConfigMap that records object → digest of what was started."""

    mark: Mark | None
    runs: Mapping[str, str]
    going: bool = False


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """All objects of a workload, by `Job/train`."""

    cluster: Annotated[str, Ref(*CLUSTERS)]
    namespace: Annotated[str, Ref("namespace", optional=True)]
    token_secret: Annotated[str, Ref("token_secret")] | None = None
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    device_plugin: Annotated[str, Ref("bitfusion_device_plugin")] | None = None
    home: Endpoint
    record: Record | None = None
    objects: Mapping[str, Thing] = field(default_factory=dict)


def record_name(name: str) -> str:
    """The ConfigMap's name."""
    return f"bfinfra-workload-{name}"


def state_of(objects: Sequence[Object], pods: Sequence[Object], cluster: Cluster) -> State:
    """The state. `objects`: this site's, or unmarked ones in its places, of one namespace; `pods`: all of
    theirs.
    """
    record = next((_record(obj) for obj in objects if obj["kind"] == "ConfigMap"), None)
    things = {
        f"{o['kind']}/{o['metadata']['name']}": _thing(o, pods) for o in objects if o["kind"] != "ConfigMap"
    }
    marks = (
        [record.mark if record else None, *(thing.mark for thing in things.values())]
        if record
        else [t.mark for t in things.values()]
    )
    mark = (
        None
        if None in marks
        else (record.mark if record and record.mark else marks[0].pending if marks[0] else None)
    )
    applied = (mark.applied if mark else None) or {}
    return State(
        mark=mark,
        cluster=cluster.key.name,
        namespace=objects[0]["metadata"]["namespace"],
        home=cluster.endpoint,
        record=record,
        objects=things,
        token_secret=applied.get("token_secret"),
        registry_credential=applied.get("registry_credential"),
        device_plugin=applied.get("device_plugin"),
    )


def _record(obj: Object) -> Record:
    try:
        runs = json.loads((obj.get("data") or {}).get("runs") or "{}")
    except ValueError:
        runs = {}
    return Record(
        mark_of(obj), runs if isinstance(runs, dict) else {}, bool(obj["metadata"].get("deletionTimestamp"))
    )


def _thing(obj: Object, pods: Sequence[Object]) -> Thing:
    metadata, kind_ = obj["metadata"], obj["kind"]
    own = [obj] if kind_ == "Pod" else [p for p in pods if kind_ == "Job" and job_of(p) == metadata["name"]]
    phase, why = {"Pod": _pod, "Job": job_phase}.get(kind_, _claim)(obj)
    for word, tell in (("stuck", stuck), ("pulling", pulling)):
        if phase == "waiting" and (hindrance := next((w for p in own if (w := tell(p))), "")):
            phase, why = word, hindrance
    if phase == "waiting" and kind_ == "Job":
        why = next((f"finds no node for its pod: {w}" for p in own if (w := unplaced(p))), why)
    request = str(
        (((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage") or ""
    )
    return Thing(
        obj["apiVersion"],
        kind_,
        metadata["name"],
        mark_of(obj),
        notes(obj).get(RENDERED, ""),
        bool(metadata.get("deletionTimestamp")),
        phase,
        safe(why, 300),
        request,
        tuple(p["metadata"]["name"] for p in own),
        _ran(obj, own),
        obj,
    )


def _ran(obj: Object, pods: Sequence[Object]) -> bool:
    """Return whether it ever ran. A Job's counts include pods that no longer exist."""
    status = obj.get("status") or {}
    return (
        obj["kind"] == "PersistentVolumeClaim"
        or any(map(ran, pods))
        or any(status.get(count) for count in ("ready", "succeeded", "failed"))
    )


def _pod(obj: Object) -> tuple[str, str]:
    status = obj.get("status") or {}
    phase = status.get("phase")
    conditions = {c.get("type"): c for c in status.get("conditions") or ()}
    if phase == "Succeeded":
        return "finished", ""
    if phase == "Failed":
        return "failed", status.get("message") or status.get("reason") or _ended(obj)
    if phase == "Running" and conditions.get("Ready", {}).get("status", "True") == "True":
        return "running", ""
    scheduled = conditions.get("PodScheduled", {})
    return "waiting", scheduled.get("message", "") if scheduled.get("status") == "False" else str(
        phase or "accepted"
    ).lower()


def _ended(pod: Object) -> str:
    return "; ".join(
        f"exit code {e['exitCode']} {e.get('message') or e.get('reason') or ''}".strip()
        for e in ends(pod)
        if e.get("exitCode")
    )


def _claim(obj: Object) -> tuple[str, str]:
    phase = (obj.get("status") or {}).get("phase")
    return ("failed", "its volume is lost") if phase == "Lost" else ("running", str(phase or ""))
