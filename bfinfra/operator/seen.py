"""Turns the API server's Jobs and pods into checks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bfinfra.operator.decide import Look
from bfinfra.operator.job import GENERATION, KEY, ORDER, TRIGGER, UID
from bfinfra.operator.result import Result

WORDS = 300  # characters of a log's last lines
STARTS = 120  # seconds that a pod may take to start before it is reported
JOB = "batch.kubernetes.io/job-name"


def uid(body: Mapping[str, Any]) -> str:
    """The uid of the Site whose Job or pod it is."""
    return str((body["metadata"].get("labels") or {}).get(UID, ""))


def look(body: Mapping[str, Any], before: Look | None = None) -> Look:
    """The check of a Job. `before`: what is known of it already from its pod."""
    meta, status = body["metadata"], body.get("status") or {}
    ended = next(
        (
            each
            for each in status.get("conditions") or ()
            if each.get("type") in ("Complete", "Failed") and each.get("status") == "True"
        ),
        None,
    )
    labels, noted = meta.get("labels") or {}, meta.get("annotations") or {}
    number = str(noted.get(GENERATION, ""))
    why = (
        f"{ended.get('reason', '')}: {ended.get('message', '')}"
        if ended and ended["type"] == "Failed"
        else ""
    )
    made = Look(
        meta["name"],
        str(labels.get(KEY, "")),
        seconds(meta.get("creationTimestamp")),
        int(number) if number.isdecimal() else 0,
        labels.get(ORDER) == "destroy",
        seconds(ended.get("lastTransitionTime")) if ended else 0,
        why,
        trigger=str(noted.get(TRIGGER, "")),
    )
    return replace(made, result=before.result, why=made.why or before.why) if before else made


def early(pod: Mapping[str, Any]) -> Look:
    """A check whose pod was reported before its Job."""
    labels = pod["metadata"].get("labels") or {}
    return Look(
        job_of(pod),
        str(labels.get(KEY, "")),
        seconds(pod["metadata"].get("creationTimestamp")),
        destroy=labels.get(ORDER) == "destroy",
    )


def job_of(pod: Mapping[str, Any]) -> str:
    """The name of the pod's Job."""
    return str((pod["metadata"].get("labels") or {}).get(JOB, ""))


def reported(pod: Mapping[str, Any]) -> tuple[Result | None, str]:
    """A pod's result, or why there is none; nothing while it runs."""
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if ended := (each.get("state") or {}).get("terminated"):
            text = str(ended.get("message", ""))
            if found := Result.read(text):
                return found, ""
            return (
                None,
                (
                    f"{ended.get('reason', 'Error')} (exit {ended.get('exitCode', '?')}) "
                    f"{' '.join(text.split())[-WORDS:]}"
                ).strip(),
            )
    return None, ""


def stuck(pod: Mapping[str, Any], now: float) -> str:
    """Return why a pod has not started in time, or ""."""
    status = pod.get("status") or {}
    if status.get("phase") != "Pending" or now < seconds(pod["metadata"].get("creationTimestamp")) + STARTS:
        return ""
    waiting = [
        (each.get("state") or {}).get("waiting") or {} for each in status.get("containerStatuses") or ()
    ]
    refused = [
        each
        for each in status.get("conditions") or ()
        if each.get("type") == "PodScheduled" and each.get("status") == "False"
    ]
    reported = [
        ": ".join(filter(None, (str(each.get("reason", "")), str(each.get("message", "")))))
        for each in (*refused, *waiting)
    ]
    why = next(filter(None, reported), "for an unknown reason")
    hint = (
        "; check that each Secret and ConfigMap of spec.env and spec.files exists, with its key"
        if why == "ContainerCreating"
        else ""
    )
    return f"the pod {pod['metadata']['name']} does not start: {' '.join(why.split())[:WORDS]}{hint}"


def seconds(text: Any) -> float:
    """Kubernetes' RFC 3339 in seconds since the epoch; 0 for none."""
    try:
        return dt.datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
