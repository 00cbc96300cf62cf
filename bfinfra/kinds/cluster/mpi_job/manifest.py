"""The manifest of an MPIJob, in either version, from the same fields."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from bfinfra.kinds.cluster.mpi_job.spec import Spec
from bfinfra.kinds.cluster.mpi_operator.definition import GROUP, KIND

Manifest = dict[str, Any]
TRANSPORTS = {
    "roce": {"NCCL_IB_DISABLE": "0", "NCCL_IB_GDR_LEVEL": "0", "HOROVOD_MPI_THREADS_DISABLE": "1"},
    "tcp": {"NCCL_IB_DISABLE": "1", "NCCL_IB_GDR_LEVEL": "0", "HOROVOD_MPI_THREADS_DISABLE": "0"},
}
"""The document's variables for RoCE, and those that it changes for TCP."""
PASSED = ("LD_LIBRARY_PATH", "PATH")
"""Variables whose values come from the image."""
CLEAN = {"none": "None", "running": "Running", "all": "All"}
FIELDS = {
    "slotsPerWorker": "slots",
    "mpiReplicaSpecs.Worker.replicas": "workers",
    "cleanPodPolicy": "clean_pods",
    "runPolicy.cleanPodPolicy": "clean_pods",
    "backoffLimit": "retries",
    "runPolicy.backoffLimit": "retries",
    "activeDeadlineSeconds": "deadline",
    "runPolicy.activeDeadlineSeconds": "deadline",
}
"""Path in an MPIJob's spec → field of the site. Other differences are reported by their path."""
LAUNCHERS = {
    "v1alpha2": "mpi_job_name={},mpi_role_type=launcher",
    "v2beta1": "training.kubeflow.org/job-name={},training.kubeflow.org/job-role=launcher",
}
"""The selector of a job's launcher."""
PODS = {"v1alpha2": "mpi_job_name={}", "v2beta1": "training.kubeflow.org/job-name={}"}
"""The selector of its launcher and workers."""


def manifest(name: str, spec: Spec, version: str, namespace: str, pull: str = "") -> Manifest:
    """The MPIJob, without a mark. `pull`: the Secret to pull its image with, or ""."""
    replicas = {
        "Launcher": {"replicas": 1, "template": _pod(spec, _launcher(name, spec), pull)},
        "Worker": {
            "replicas": spec.workers,
            "template": _pod(spec, _worker(name, spec), pull, devices=spec.transport == "roce"),
        },
    }
    given = {
        "cleanPodPolicy": CLEAN[spec.clean_pods],
        "backoffLimit": spec.retries,
        "activeDeadlineSeconds": spec.deadline,
    }
    policy = {field: value for field, value in given.items() if value is not None}
    body = {
        "slotsPerWorker": spec.slots,
        **(policy if version == "v1alpha2" else {"runPolicy": policy}),
        "mpiReplicaSpecs": replicas,
    }
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": body,
    }


def digest(made: Manifest) -> str:
    """A digest of everything that bfinfra decides."""
    return hashlib.sha256(json.dumps(made, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def field_of(path: str) -> str:
    """The site's field for a path in an MPIJob's spec."""
    return FIELDS.get(path, f"manifest.{path}")


def mpirun(spec: Spec) -> list[str]:
    """The launcher's command."""
    variables = {"NCCL_DEBUG": "INFO", **TRANSPORTS[spec.transport], **spec.environment}
    exported = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    exported += [word for name in PASSED if name not in variables for word in ("-x", name)]
    return [
        "mpirun",
        "--allow-run-as-root",
        "-np",
        str(spec.workers * spec.slots),
        *exported,
        *spec.mpirun,
        *spec.command,
    ]


def _launcher(name: str, spec: Spec) -> Manifest:
    return {"image": spec.image, "name": name, "command": mpirun(spec)}


def _worker(name: str, spec: Spec) -> Manifest:
    limits = {"resources": {"limits": {spec.gpu_resource: spec.gpus}}} if spec.gpus else {}
    if spec.transport == "tcp":
        return {"image": spec.image, "name": name, **limits}
    mounts = [{"mountPath": spec.devices, "name": "infiniband"}]
    return {
        "image": spec.image,
        "name": name,
        "securityContext": {"privileged": True},
        "volumeMounts": mounts,
        **limits,
    }


def _pod(spec: Spec, container: Manifest, pull: str, *, devices: bool = False) -> Manifest:
    volumes = {"volumes": [{"name": "infiniband", "hostPath": {"path": spec.devices}}]} if devices else {}
    secrets = {"imagePullSecrets": [{"name": pull}]} if pull else {}
    return {"spec": {"containers": [container], **volumes, **secrets}}
