"""Runs Jobs: it starts pods until enough of them succeeded, or too many failed."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.objects import (
    Object,
    condition,
    copied,
    dig,
    name_of,
    namespace_of,
    owned_by,
    random_suffix,
    stamp,
    uid_of,
)
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.target import Options, Target

JOBS: Key = ("batch", "jobs")
PODS: Key = ("", "pods")
CONTROLLER = "kube-controller-manager"


class Jobs:
    """The job controller, with ttlSecondsAfterFinished."""

    kinds = (JOBS,)

    def __init__(self, loop: Loop) -> None:
        self._loop, self._cluster = loop, loop.cluster
        loop.cluster.admissions.append(self._label)

    def touched(self, change: Change) -> Iterable[Item]:
        """The job of a pod; jobs that a quota may have stopped."""
        if change.key == PODS:
            for owner in change.after["metadata"].get("ownerReferences") or []:
                if owner["kind"] == "Job":
                    yield (JOBS, namespace_of(change.after), owner["name"])
        elif change.key == ("", "resourcequotas"):
            for job in self._cluster.store.all(JOBS, namespace_of(change.after)):
                yield (JOBS, namespace_of(job), name_of(job))

    def look(self, item: Item, thing: Object | None) -> None:
        """Start what is missing, count what ended."""
        if thing is None or thing["metadata"].get("deletionTimestamp") or dig(thing, "spec", "suspend"):
            return
        if any(
            each["type"] in ("Complete", "Failed") for each in dig(thing, "status", "conditions", default=[])
        ):
            self._expire(thing)
            return
        pods = [pod for pod in self._cluster.store.all(PODS, item[1]) if _owner(pod) == uid_of(thing)]
        phases = [dig(pod, "status", "phase") for pod in pods]
        done, failed = phases.count("Succeeded"), phases.count("Failed")
        active = len(phases) - done - failed
        wanted = thing["spec"].get("completions", 1)
        status = self._status(thing, active, done, failed)
        over = failed > thing["spec"].get("backoffLimit", 6)
        if done >= wanted or over:
            status = _ended(status, stamp(self._cluster.clock.now()), over=over)
        if status != thing.get("status"):
            thing = self._cluster.set_status(thing, status)
        if not over:
            for _ in range(min(thing["spec"].get("parallelism", 1), wanted - done) - active):
                self._loop.made(thing, _pod(thing))

    def _status(self, job: Object, active: int, done: int, failed: int) -> Object:
        began = dig(job, "status", "startTime", default=stamp(self._cluster.clock.now()))
        counted = {
            key: value
            for key, value in (("active", active), ("succeeded", done), ("failed", failed))
            if value
        }
        return {"startTime": began, **counted, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}

    def _expire(self, job: Object) -> None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is not None:
            self._cluster.clock.after(seconds, lambda: self._cluster.remove(job))

    def _label(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        if target.resource.key == JOBS and before is None:
            uid, name = uid_of(after), name_of(after)
            labels = {
                "batch.kubernetes.io/controller-uid": uid,
                "batch.kubernetes.io/job-name": name,
                "controller-uid": uid,
                "job-name": name,
            }
            template = after["spec"]["template"].setdefault("metadata", {})
            template["labels"] = {**template.get("labels", {}), **labels}
            after["spec"].setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
            after["metadata"].setdefault("labels", labels)
        return after


def _ended(status: Object, when: str, *, over: bool) -> Object:
    if over:
        why = condition(
            "Failed",
            status=True,
            when=when,
            reason="BackoffLimitExceeded",
            message="Job has reached the specified backoff limit",
        )
        return {
            **status,
            "conditions": [
                condition("FailureTarget", status=True, when=when, reason="BackoffLimitExceeded"),
                why,
            ],
        }
    reached = condition(
        "SuccessCriteriaMet",
        status=True,
        when=when,
        reason="CompletionsReached",
        message="Reached expected number of succeeded pods",
    )
    complete = condition(
        "Complete",
        status=True,
        when=when,
        reason="CompletionsReached",
        message="Reached expected number of succeeded pods",
    )
    return {**status, "completionTime": when, "conditions": [reached, complete]}


def _pod(job: Object) -> Object:
    template = copied(job["spec"]["template"])
    metadata = {
        **template.get("metadata", {}),
        "name": f"{name_of(job)}-{random_suffix()}",
        "generateName": f"{name_of(job)}-",
        "namespace": namespace_of(job),
        "ownerReferences": [owned_by(job)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _owner(pod: Object) -> str:
    return next(
        (each["uid"] for each in pod["metadata"].get("ownerReferences") or [] if each.get("controller")), ""
    )
