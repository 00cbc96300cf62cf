"""From (apiVersion, kind) to the path: a table of what bfinfra uses; other kinds are looked up on the
server.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TANZU = "run.tanzu.vmware.com"
VERSIONED = re.compile(r"/apis/([^/]+)/([^/]+)(?:/namespaces/[^/]+(?=/))?(?:/([^/]+))?")


class Resource(NamedTuple):
    """The path and scope of a kind of object."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group(self) -> str:
        """The API group, "" for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]


def _table() -> dict[tuple[str, str], Resource]:
    namespaced = {
        "v1": (
            "Pod Secret ConfigMap Service ServiceAccount PersistentVolumeClaim ResourceQuota LimitRange Event"
        ),
        "apps/v1": "Deployment StatefulSet DaemonSet ReplicaSet",
        "batch/v1": "Job CronJob",
        "rbac.authorization.k8s.io/v1": "Role RoleBinding",
        "coordination.k8s.io/v1": "Lease",
        "bfinfra.io/v1alpha1": "Site",
        f"{TANZU}/v1alpha1": "TanzuKubernetesCluster",
        f"{TANZU}/v1alpha2": "TanzuKubernetesCluster",
        f"{TANZU}/v1alpha3": "TanzuKubernetesCluster",
        "cluster.x-k8s.io/v1beta1": "Cluster",
        "cluster.x-k8s.io/v1beta2": "Cluster",
    }
    everywhere = {
        "v1": "Namespace Node PersistentVolume",
        "authorization.k8s.io/v1": "SelfSubjectAccessReview",
        "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding",
        "apiextensions.k8s.io/v1": "CustomResourceDefinition",
        "admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
        f"{TANZU}/v1alpha1": "TanzuKubernetesRelease",
    }
    rows = [(api, kind, True) for api, kinds in namespaced.items() for kind in kinds.split()]
    rows += [(api, kind, False) for api, kinds in everywhere.items() for kind in kinds.split()]
    found = {(api, kind): Resource(api, kind, f"{kind.lower()}s", scoped) for api, kind, scoped in rows}
    found["storage.k8s.io/v1", "StorageClass"] = Resource(
        "storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False
    )
    return found


KNOWN = _table()


def discovered(api_version: str, answer: object) -> dict[tuple[str, str], Resource]:
    """The resources in an APIResourceList, without subresources."""
    entries = answer.get("resources") if isinstance(answer, dict) else None
    return {
        (api_version, str(e["kind"])): Resource(
            api_version, str(e["kind"]), str(e["name"]), bool(e.get("namespaced"))
        )
        for e in entries or ()
        if isinstance(e, dict) and "kind" in e and "name" in e and "/" not in str(e["name"])
    }


def path(api_version: str) -> str:
    """`v1` → `/api/v1`, `batch/v1` → `/apis/batch/v1`."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def named(path_: str) -> tuple[str, str, str]:
    """Group, version and plural in a path below /apis; "" for parts that it doesn't have."""
    found = VERSIONED.search(path_)
    return (found[1], found[2], found[3] or "") if found else ("", "", "")
