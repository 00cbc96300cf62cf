"""MPI jobs: workers, then a launcher, then what came of it. They are taken up where an mpi-operator's
Deployment is available.
"""

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
    stamp,
)
from bfinfra.sandbox.kubernetes.store import Change, Key

MPI: Key = ("kubeflow.org", "mpijobs")
PODS: Key = ("", "pods")
JOBS: Key = ("batch", "jobs")
DEPLOYMENTS: Key = ("apps", "deployments")
OPERATOR = "mpi-operator"
ENDED = ("Succeeded", "Failed")


class MpiJobs:
    """The operator of either version: they differ in labels and in the place of the policy."""

    kinds = (MPI,)

    def __init__(self, loop: Loop) -> None:
        self._loop, self._cluster = loop, loop.cluster

    def touched(self, change: Change) -> Iterable[Item]:
        """The MPI job of a pod or Job; all of them when an operator comes."""
        if change.key in (PODS, JOBS):
            for owner in change.after["metadata"].get("ownerReferences") or []:
                if owner["kind"] == "MPIJob":
                    yield (MPI, namespace_of(change.after), owner["name"])
        elif change.key == DEPLOYMENTS:
            for each in self._cluster.store.all(MPI):
                yield (MPI, namespace_of(each), name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """The next step of one job."""
        if (
            thing is None
            or thing["metadata"].get("deletionTimestamp")
            or self._has_condition(thing, *ENDED)
            or not self._operated()
        ):
            return
        if dig(thing, "spec", "runPolicy", "suspend"):
            return
        if not self._has_condition(thing, "Created"):
            self._tell(thing, "Created", f"MPIJob {namespace_of(thing)}/{name_of(thing)} is created.")
            return
        workers = self._workers(thing)
        launcher = self._cluster.get("batch", "jobs", f"{name_of(thing)}-launcher", namespace_of(thing))
        if launcher is None:
            if all(pod is not None and dig(pod, "status", "phase") == "Running" for pod in workers):
                self._cluster.create(_launcher(thing))
            return
        ends = {
            each["type"]: each.get("message", "")
            for each in dig(launcher, "status", "conditions", default=[])
        }
        if "Complete" in ends or "Failed" in ends:
            self._end(
                thing,
                [pod for pod in workers if pod],
                "Succeeded" if "Complete" in ends else "Failed",
                ends.get("Failed", ""),
            )
        elif dig(launcher, "status", "active") and not self._has_condition(thing, "Running"):
            self._tell(thing, "Running", f"MPIJob {namespace_of(thing)}/{name_of(thing)} is running.")

    def _operated(self) -> bool:
        return any(
            dig(each, "status", "availableReplicas")
            and OPERATOR in str(dig(each, "spec", "template", "spec", "containers", 0, "image"))
            for each in self._cluster.store.all(DEPLOYMENTS)
        )

    def _workers(self, thing: Object) -> list[Object | None]:
        found = []
        for number in range(dig(thing, "spec", "mpiReplicaSpecs", "Worker", "replicas", default=0)):
            name = f"{name_of(thing)}-worker-{number}"
            found.append(
                self._cluster.get("", "pods", name, namespace_of(thing))
                or self._loop.made(thing, _pod(thing, "Worker", name))
            )
        return found

    def _end(self, thing: Object, workers: list[Object], how: str, why: str) -> None:
        policy = (
            dig(thing, "spec", "cleanPodPolicy")
            or dig(thing, "spec", "runPolicy", "cleanPodPolicy")
            or "None"
        )
        if policy != "None":
            for pod in workers:
                self._cluster.remove(pod)
        if policy == "All":
            for pod in self._cluster.store.all(PODS, namespace_of(thing)):
                if any(
                    owner["name"] == f"{name_of(thing)}-launcher"
                    for owner in pod["metadata"].get("ownerReferences") or []
                ):
                    self._cluster.remove(pod)
        text = "successfully completed" if how == "Succeeded" else f"has failed: {why}"
        self._tell(thing, how, f"MPIJob {namespace_of(thing)}/{name_of(thing)} {text}.")

    def _has_condition(self, thing: Object, *kinds: str) -> bool:
        return any(
            each["type"] in kinds and each["status"] == "True"
            for each in dig(thing, "status", "conditions", default=[])
        )

    def _tell(self, thing: Object, kind: str, message: str) -> None:
        when = stamp(self._cluster.clock.now())
        before = [
            {**each, "status": "False"} if each["type"] == "Running" and kind in ENDED else each
            for each in dig(thing, "status", "conditions", default=[])
        ]
        reported = condition(kind, status=True, when=when, reason=f"MPIJob{kind}", message=message)
        state = {"active": 1} if kind == "Running" else {kind.lower(): 1} if kind in ENDED else {}
        times = {"completionTime": when} if kind in ENDED else {}
        self._cluster.set_status(
            thing,
            {
                "startTime": when,
                **(thing.get("status") or {}),
                **times,
                "conditions": [*before, reported],
                "replicaStatuses": {"Launcher": state},
            },
            OPERATOR,
        )


def _labels(thing: Object, role: str) -> Object:
    if thing["apiVersion"].endswith("/v1alpha2"):
        return {"group_name": "kubeflow.org", "mpi_job_name": name_of(thing), "mpi_role_type": role.lower()}
    return {
        "training.kubeflow.org/job-name": name_of(thing),
        "training.kubeflow.org/job-role": role.lower(),
        "training.kubeflow.org/operator-name": OPERATOR,
    }


def _template(thing: Object, role: str) -> Object:
    template = copied(thing["spec"]["mpiReplicaSpecs"][role]["template"])
    metadata = template.get("metadata") or {}
    return {
        "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **_labels(thing, role)}},
        "spec": template["spec"],
    }


def _pod(thing: Object, role: str, name: str) -> Object:
    template = _template(thing, role)
    spec = {
        **template["spec"],
        "restartPolicy": "Always",
    }  # an SSH server, or a sleep that the launcher's exec joins: neither ends by itself
    metadata = {
        **template["metadata"],
        "name": name,
        "namespace": namespace_of(thing),
        "ownerReferences": [owned_by(thing)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _launcher(thing: Object) -> Object:
    template = _template(thing, "Launcher")
    template["spec"]["restartPolicy"] = "Never"
    metadata = {
        "name": f"{name_of(thing)}-launcher",
        "namespace": namespace_of(thing),
        "labels": {"app": name_of(thing)},
        "ownerReferences": [owned_by(thing)],
    }
    retries = dig(thing, "spec", "backoffLimit") or dig(thing, "spec", "runPolicy", "backoffLimit")
    spec = {"template": template, **({"backoffLimit": retries} if retries is not None else {})}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
