"""The objects of an operator, in the order of their creation."""

from __future__ import annotations

from typing import Any

from bfinfra.kinds.cluster.mpi_operator.definition import GROUP, PLURAL, definition
from bfinfra.kinds.cluster.mpi_operator.spec import DELIVERY, IMAGES, Spec

NAME = "mpi-operator"
RBAC = "rbac.authorization.k8s.io"
KINDS = (
    ("v1", "ServiceAccount"),
    (f"{RBAC}/v1", "ClusterRole"),
    (f"{RBAC}/v1", "ClusterRoleBinding"),
    ("apps/v1", "Deployment"),
)
"""All except the definition; each is called `mpi-operator`."""
Manifest = dict[str, Any]


def manifests(spec: Spec, namespace: str) -> tuple[Manifest, ...]:
    """The definition first: while it exists, the other objects of the operator can be found. The Deployment
    last.
    """
    here = {"name": NAME, "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME}
    return (
        definition(spec.api),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": RULES[spec.api](),
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "subjects": [subject],
            "roleRef": role,
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**here, "labels": {"app": NAME}},
            "spec": _deployment(spec, namespace),
        },
    )


def _deployment(spec: Spec, namespace: str) -> Manifest:
    args = ["-alsologtostderr", f"--lock-namespace={namespace}"]
    if spec.api == "v1alpha2":
        args += ["--kubectl-delivery-image", spec.delivery_image or DELIVERY]
    container = {"name": NAME, "image": spec.image or IMAGES[spec.api], "args": args}
    pod = {"serviceAccountName": NAME, "containers": [container]}
    labels = {"app": NAME}
    return {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


def _rule(group: str, resources: str, verbs: str) -> Manifest:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def _own() -> list[Manifest]:
    """Privileges of both versions: their own objects, the launcher's Job, events."""
    return [
        _rule(
            GROUP,
            f"{PLURAL} {PLURAL}/finalizers {PLURAL}/status",
            "get list watch create update patch delete",
        ),
        _rule("batch", "jobs", "create list update watch"),
        _rule("", "events", "create patch"),
        _rule("apiextensions.k8s.io", "customresourcedefinitions", "get"),
    ]


def _v1alpha2() -> list[Manifest]:
    """In this version launchers reach their workers by `kubectl exec`: the operator creates a role for each,
    and must hold what it grants.
    """
    return [
        *_own(),
        _rule("", "configmaps serviceaccounts", "create list watch"),
        _rule("", "pods", "get list watch"),
        _rule("", "pods/exec", "create"),
        _rule("", "endpoints", "create get update"),
        _rule(RBAC, "roles rolebindings", "create list watch"),
        _rule("apps", "statefulsets", "create list update watch"),
    ]


def _v2beta1() -> list[Manifest]:
    """In this version launchers reach their workers by SSH: keys in a Secret, names from a Service, workers
    as pods.
    """
    return [
        *_own(),
        _rule("", "configmaps secrets services", "create list watch update"),
        _rule("", "pods", "create get list watch delete update patch"),
        _rule("coordination.k8s.io", "leases", "create get update"),
        _rule("scheduling.k8s.io", "priorityclasses", "get list watch"),
    ]


RULES = {"v1alpha2": _v1alpha2, "v2beta1": _v2beta1}
