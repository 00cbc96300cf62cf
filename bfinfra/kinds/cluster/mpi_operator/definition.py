"""The CustomResourceDefinition of MPIJob, for apiextensions.k8s.io/v1 (Kubernetes 1.16 and later). Written
for bfinfra after the public Go types. The API server checks the pods' templates when pods are created.
"""

from __future__ import annotations

from typing import Any

GROUP, PLURAL, KIND = "kubeflow.org", "mpijobs", "MPIJob"
NAME = f"{PLURAL}.{GROUP}"
Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
FREE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CLEAN: Schema = {"type": "string", "enum": ["None", "Running", "All"]}


def definition(version: str) -> Schema:
    """The CustomResourceDefinition for a version."""
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": "mpijob",
        **({"shortNames": ["mj", "mpij"]} if version == "v1alpha2" else {}),
    }
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": SPECS[version](), "status": FREE}}
        },
    }
    spec = {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [served]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": spec,
    }


def _object(*required: str, **fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, **({"required": list(required)} if required else {})}


def _number(least: int, most: int | None = None) -> Schema:
    return {
        "type": "integer",
        "format": "int32",
        "minimum": least,
        **({"maximum": most} if most is not None else {}),
    }


def _seconds() -> Schema:
    return {"type": "integer", "format": "int64", "minimum": 0}


def _replicas() -> Schema:
    restart = {"type": "string", "enum": ["Never", "OnFailure", "Always", "ExitCode"]}
    launcher = _object("template", replicas=_number(1, 1), restartPolicy=restart, template=FREE)
    worker = _object("template", replicas=_number(1), restartPolicy=restart, template=FREE)
    return _object("Launcher", Launcher=launcher, Worker=worker)


def _run_policy(**more: Schema) -> Schema:
    return _object(
        cleanPodPolicy=CLEAN,
        ttlSecondsAfterFinished=_number(0),
        activeDeadlineSeconds=_seconds(),
        backoffLimit=_number(0),
        schedulingPolicy=FREE,
        **more,
    )


def _v1alpha2() -> Schema:
    return _object(
        "mpiReplicaSpecs",
        slotsPerWorker=_number(1),
        backoffLimit=_number(0),
        activeDeadlineSeconds=_seconds(),
        cleanPodPolicy=CLEAN,
        mainContainer=TEXT,
        runPolicy=_run_policy(),
        mpiReplicaSpecs=_replicas(),
    )


def _v2beta1() -> Schema:
    return _object(
        "mpiReplicaSpecs",
        slotsPerWorker={**_number(1), "default": 1},
        runLauncherAsWorker={"type": "boolean"},
        runPolicy=_run_policy(suspend={"type": "boolean"}, managedBy=TEXT),
        mpiReplicaSpecs=_replicas(),
        sshAuthMountPath={**TEXT, "default": "/root/.ssh"},
        launcherCreationPolicy={**TEXT, "enum": ["AtStartup", "WaitForWorkersReady"], "default": "AtStartup"},
        mpiImplementation={**TEXT, "enum": ["OpenMPI", "Intel", "MPICH"], "default": "OpenMPI"},
    )


SPECS = {"v1alpha2": _v1alpha2, "v2beta1": _v2beta1}
