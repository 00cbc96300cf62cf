"""What stands in a namespace or cluster that isn't ours: what a deletion would take along."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.marks import ours

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.cluster import Cluster

KINDS = (
    ("v1", "Pod"), ("v1", "PersistentVolumeClaim"), ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"),
    ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"), ("batch/v1", "CronJob"),
)  # fmt: skip
SYSTEM = re.compile(r"kube-(system|public|node-lease)|vmware-system-.*|tanzu-.*|tkg-system.*|pks-system")
OWN_FURNITURE = {("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "istio-ca-root-cert"), ("Service", "kubernetes"), ("Service", "supervisor")}
MOST = 50  # names told
TOKENS = ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")


def strangers(cluster: Cluster, namespace: str, site: str) -> tuple[str, ...]:
    """`Pod default/web`, … for what nobody owns and the site did not make; RemoteError where it can't be listed."""
    found = [
        f"{kind} {obj['metadata'].get('namespace', '')}/{obj['metadata'].get('name', '')}"
        for api, kind in KINDS for obj in cluster.list(api, kind, namespace) if _counts(kind, obj, site)
    ]
    more = (f"and {len(found) - MOST} more",) if len(found) > MOST else ()
    return (*found[:MOST], *more)


def _counts(kind: str, obj: Mapping[str, Any], site: str) -> bool:
    metadata = obj["metadata"]
    if ours(obj, site) or metadata.get("ownerReferences") or SYSTEM.fullmatch(metadata.get("namespace", "")):
        return False
    return (kind, metadata.get("name")) not in OWN_FURNITURE and obj.get("type") not in TOKENS
