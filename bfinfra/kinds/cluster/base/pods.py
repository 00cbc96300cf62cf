"""Reads the status of Jobs and pods, and the Secret for their images; checks tolerations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import FieldError, Refusal

PULLING = ("ErrImagePull", "ImagePullBackOff")
"""Reasons for which a container waits for its image. The kubelet retries, at first after 10 s, at last every
5 minutes.
"""
STUCK = (
    "InvalidImageName",
    "ErrImageNeverPull",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
Object = Mapping[str, Any]


def check_toleration(operator: str, key: str, value: str) -> None:
    """Raises FieldError for a toleration that Kubernetes refuses."""
    if operator == "Exists" and value:
        raise FieldError("it goes with operator: Equal", "value")
    if operator == "Equal" and not key:
        raise FieldError("operator: Equal needs it", "key")


def job_phase(job: Object) -> tuple[str, str]:
    """`finished`, `failed`, `running` or `waiting`, and the Job's reason."""
    status = job.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            return ("finished" if condition["type"] == "Complete" else "failed"), condition.get(
                "message"
            ) or condition.get("reason") or ""
    ready = status.get("ready")  # since Kubernetes 1.24; older ones report active pods only
    return (
        "running" if (status.get("active") if ready is None else ready) else "waiting"
    ), "its pod isn't ready yet"


def job_of(pod: Object) -> str:
    """The name of the Job that created a pod, or ""."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((o.get("name", "") for o in owners if o.get("kind") == "Job"), "")


def stuck(pod: Object) -> str:
    """Return why a container of the pod can't start, or ""."""
    return _waits(pod, STUCK)


def pulling(pod: Object) -> str:
    """Return why a container of the pod has no image yet, or ""."""
    return _waits(pod, PULLING)


def unplaced(pod: Object) -> str:
    """Return why the scheduler finds no node for the pod, or ""."""
    found: Object = next(
        (
            c
            for c in (pod.get("status") or {}).get("conditions") or ()
            if c.get("type") == "PodScheduled" and c.get("status") == "False"
        ),
        {},
    )
    return str(found.get("message") or found.get("reason") or "")


def ran(pod: Object) -> bool:
    """Return whether any container of the pod has ever started."""
    found = [
        s
        for s in _statuses(pod)
        if s.get("restartCount")
        or {"running", "terminated"} & {*(s.get("state") or ()), *(s.get("lastState") or ())}
    ]
    return bool(found) or (pod.get("status") or {}).get("phase") not in (None, "Pending")


def _waits(pod: Object, reasons: tuple[str, ...]) -> str:
    waits = [(s.get("state") or {}).get("waiting") or {} for s in _statuses(pod)]
    return next((f"{w['reason']}: {w.get('message') or ''}" for w in waits if w.get("reason") in reasons), "")


def _statuses(pod: Object) -> list[Object]:
    return [
        s
        for name in ("initContainerStatuses", "containerStatuses")
        for s in (pod.get("status") or {}).get(name) or ()
    ]


def ends(pod: Object) -> list[Mapping[str, Any]]:
    """Return how the pod's containers ended: exit codes, reasons, messages."""
    return [
        (c.get("state") or {}).get("terminated") or {}
        for c in (pod.get("status") or {}).get("containerStatuses") or ()
    ]


def pull_secret(
    need: ResolvedRef | None,
    cluster: str,
    namespace: str,
    written: str | None,
    field: str = "registry_credential",
) -> str:
    """The Secret of the `registry_credential` that a field names, or "". Raises Refusal if the credential
    doesn't put it into the namespace. `written`: the namespace as the site writes it.
    """
    if need is None or need.spec is None:
        return ""
    if need.spec.cluster != cluster or (
        namespace not in need.spec.namespaces and written not in need.spec.namespaces
    ):
        raise Refusal(
            f"{need.key} does not reach the namespace {namespace} of {cluster}",
            field=field,
            next="add the namespace to its namespaces, or name one for that cluster",
        )
    return str(need.spec.secret or need.key.name)
