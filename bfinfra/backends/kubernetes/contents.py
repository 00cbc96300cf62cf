"""Finds the objects in a namespace or cluster that the site did not make, and that a deletion would delete
too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bfinfra.backends.kubernetes import errors
from bfinfra.backends.kubernetes.marks import ours
from bfinfra.backends.words import safe

Listed = Callable[[str, str, str], list[dict[str, Any]]]
"""Reads a cluster's objects by apiVersion, kind and namespace."""
KINDS = (
    ("v1", "Pod"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("run.tanzu.vmware.com/v1alpha1", "TanzuKubernetesCluster"),
)
VERSIONED = (
    ("cluster.x-k8s.io", ("v1beta2", "v1beta1"), ("Cluster",)),
    (
        "vmoperator.vmware.com",
        ("v1alpha6", "v1alpha5", "v1alpha4", "v1alpha3", "v1alpha2", "v1alpha1"),
        ("VirtualMachine", "VirtualMachineService"),
    ),
)
"""Groups whose versions differ between releases, with their kinds: the newest version that is served counts.
"""
LISTED = (
    "pods persistentvolumeclaims services configmaps secrets deployments.apps statefulsets.apps "
    "daemonsets.apps jobs.batch cronjobs.batch"
)
"""The same kinds as RBAC names them."""
LISTED_ON_SUPERVISORS = (
    "tanzukubernetesclusters.run.tanzu.vmware.com clusters.cluster.x-k8s.io "
    "virtualmachines.vmoperator.vmware.com virtualmachineservices.vmoperator.vmware.com"
)
SYSTEM = re.compile(r"kube-(system|public|node-lease)|vmware-system-.*|tanzu-.*|tkg-system.*|pks-system")
OWN_FURNITURE = {
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("Service", "kubernetes"),
    ("Service", "supervisor"),
}
MOST = 50  # names in a message
TOKENS = ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")


def unmanaged(listed: Listed, namespace: str, site: str) -> tuple[str, ...]:
    """`Pod default/web`, … for objects without an owner that the site did not create. Raises RemoteError if
    they can't be listed.
    """
    existing = [
        (kind, obj) for api, kind in KINDS for obj in _where_served(listed, api, kind, namespace) or ()
    ]
    for group, versions, kinds in VERSIONED:
        existing += _newest(listed, group, versions, kinds, namespace)
    found = [
        f"{kind} {safe(obj['metadata'].get('namespace'), 63)}/{safe(obj['metadata'].get('name'), 253)}"
        for kind, obj in existing
        if _counts(kind, obj, site)
    ]
    more = (f"and {len(found) - MOST} more",) if len(found) > MOST else ()
    return (*found[:MOST], *more)


def _where_served(listed: Listed, api: str, kind: str, namespace: str) -> list[dict[str, Any]] | None:
    """The objects, or None for a kind that the cluster doesn't know: CronJob before 1.21, Tanzu's outside of
    supervisors.
    """
    try:
        return listed(api, kind, namespace)
    except errors.NotServed:
        return None


def _newest(
    listed: Listed, group: str, versions: Sequence[str], kinds: Sequence[str], namespace: str
) -> list[tuple[str, dict[str, Any]]]:
    """Kind and object, in the newest version of a group that is served."""
    for version in versions:
        found = {kind: _where_served(listed, f"{group}/{version}", kind, namespace) for kind in kinds}
        if any(objects is not None for objects in found.values()):
            return [(kind, obj) for kind, objects in found.items() for obj in objects or ()]
    return []


def _counts(kind: str, obj: Mapping[str, Any], site: str) -> bool:
    metadata = obj["metadata"]
    if ours(obj, site) or metadata.get("ownerReferences") or SYSTEM.fullmatch(metadata.get("namespace", "")):
        return False
    return (kind, metadata.get("name")) not in OWN_FURNITURE and obj.get("type") not in TOKENS
