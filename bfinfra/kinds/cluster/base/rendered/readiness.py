"""Finds out if objects are ready, by their own status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.pods import job_phase
from bfinfra.kinds.cluster.base.rendered.objects import DEFINITION, Id, custom
from bfinfra.model.readiness import READY, Readiness, failed, waiting

Object = Mapping[str, Any]


def conditions(obj: Object) -> dict[str, Object]:
    """The conditions of an object by type."""
    found = (obj.get("status") or {}).get("conditions")
    return {
        str(each.get("type")): each
        for each in found or ()
        if isinstance(found, list) and isinstance(each, dict)
    }


def readiness(each: Id, obj: Object) -> Readiness:
    """Return whether one object is ready; failed if it never will be."""
    if obj["metadata"].get("deletionTimestamp"):
        held = ", ".join(safe(name, 80) for name in obj["metadata"].get("finalizers") or ())
        return waiting(f"{each} is being deleted{f'; {held} holds it' if held else ''}")
    why = next(_hindrances(each, obj), "")
    if why and each.type == ("batch", "Job") and job_phase(obj)[0] == "failed":
        return failed(f"{each}: {why}")
    return waiting(f"{each}: {why}") if why else READY


def _hindrances(each: Id, obj: Object) -> Iterator[str]:
    status = obj.get("status") or {}
    spec = obj.get("spec") or {}
    if each.type == DEFINITION:
        yield from _true(obj, "Established", "the cluster does not serve it yet")
    elif each.group == "apiregistration.k8s.io":
        yield from _true(obj, "Available", "the cluster can't reach its server yet")
    elif each.group == "apps":
        yield from _rollout(each.kind, obj, spec, status)
    elif each.type == ("batch", "Job"):
        phase, why = job_phase(obj)
        if phase != "finished" and not spec.get("suspend"):
            yield safe(why, 200) or phase
    elif each.type == ("", "Pod"):
        if status.get("phase") != "Succeeded":
            yield from _true(obj, "Ready", "it isn't ready yet")
    elif custom(each.group):
        found = conditions(obj)
        ready, error = found.get("Ready"), found.get("Error") or {}
        if ready is not None and ready.get("status") != "True":
            # NVIDIA's operator has what hinders it in a condition of its own
            hindered = error.get("message") if error.get("status") == "True" else None
            said = ready.get("message") or hindered or ready.get("reason")
            yield safe(said or "it isn't ready yet", 200)


def _true(obj: Object, condition: str, otherwise: str) -> Iterator[str]:
    found = conditions(obj).get(condition) or {}
    if found.get("status") != "True":
        yield safe(found.get("message") or otherwise, 200)


def _rollout(kind: str, obj: Object, spec: Object, status: Object) -> Iterator[str]:
    if (status.get("observedGeneration") or 0) < (obj["metadata"].get("generation") or 0):
        yield "its controller has not seen it yet"
    elif kind == "DaemonSet":
        wanted = status.get("desiredNumberScheduled") or 0
        yield from _count(status.get("updatedNumberScheduled") or 0, wanted, "updated")
        yield from _count(status.get("numberAvailable") or 0, wanted, "available")
    else:
        wanted = 1 if spec.get("replicas") is None else spec["replicas"]
        updated = status.get("updatedReplicas") or 0 if kind != "ReplicaSet" else wanted
        yield from _count(updated, wanted, "updated")
        ready = "availableReplicas" if kind in ("Deployment", "ReplicaSet") else "readyReplicas"
        yield from _count(status.get(ready) or 0, wanted, "available")


def _count(now: int, wanted: int, word: str) -> Iterator[str]:
    if now < wanted:
        yield f"{now} of {wanted} pods are {word}"
