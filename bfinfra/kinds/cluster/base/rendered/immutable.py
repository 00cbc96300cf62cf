"""Fields that a server never changes: an object with another value has to be deleted and created again."""

from __future__ import annotations

from typing import Any

from bfinfra.kinds.cluster.base.field_diffs import field_diffs
from bfinfra.kinds.cluster.base.rendered.objects import Id, Manifest

SELECTOR = "spec.selector"
FIXED: dict[tuple[str, str], tuple[str, ...]] = {
    ("apps", "Deployment"): (SELECTOR,),
    ("apps", "DaemonSet"): (SELECTOR,),
    ("apps", "ReplicaSet"): (SELECTOR,),
    ("apps", "StatefulSet"): (
        SELECTOR,
        "spec.serviceName",
        "spec.podManagementPolicy",
        "spec.volumeClaimTemplates",
    ),
    ("batch", "Job"): (SELECTOR, "spec.template", "spec.completionMode"),
    ("", "Pod"): ("spec",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("", "Secret"): ("type",),
    ("storage.k8s.io", "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    ("scheduling.k8s.io", "PriorityClass"): ("value", "preemptionPolicy"),
    ("node.k8s.io", "RuntimeClass"): ("handler",),
}


def needs_replacement(each: Id, wanted: Manifest, live: Manifest) -> bool:
    """Return whether a field differs that can't change."""
    if live.get("immutable") and live.get("data") != wanted.get("data"):
        return True
    return any(
        True
        for path in FIXED.get(each.type, ())
        for _ in field_diffs(_at(wanted, path), _at(live, path))
        if _at(wanted, path) is not None
    )


def _at(manifest: object, path: str) -> Any:
    for name in path.split("."):
        manifest = manifest.get(name) if isinstance(manifest, dict) else None
    return manifest
