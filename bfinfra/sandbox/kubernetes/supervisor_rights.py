"""Rights on a supervisor: namespace access lists as role bindings, and what every user may see."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.bootstrap import READ, WRITE
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.objects import Object

RBAC = "rbac.authorization.k8s.io"
ROLES = {"OWNER": "admin", "EDIT": "edit", "VIEW": "view"}
TANZU = [
    {
        "apiGroups": [
            "run.tanzu.vmware.com",
            "vmoperator.vmware.com",
            "cluster.x-k8s.io",
            "addons.kubernetes.vmware.com",
        ],
        "resources": ["*"],
    }
]
SEEN_BY_ALL = [
    {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": READ},
    {"apiGroups": ["run.tanzu.vmware.com"], "resources": ["tanzukubernetesreleases"], "verbs": READ},
    {
        "apiGroups": ["vmoperator.vmware.com"],
        "resources": ["virtualmachineclasses", "virtualmachineimages"],
        "verbs": READ,
    },
    {"apiGroups": [""], "resources": ["nodes"], "verbs": READ},
    {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusterclasses"], "verbs": READ},
    {"apiGroups": ["kubernetes.vmware.com"], "resources": ["kubernetesreleases"], "verbs": READ},
    {"apiGroups": ["run.tanzu.vmware.com"], "resources": ["osimages"], "verbs": READ},
]


def extend_roles(cluster: Cluster) -> None:
    """Let the stock roles cover Tanzu's resources, and every user see what the whole supervisor offers."""
    for name, verbs in (("admin", READ + WRITE), ("edit", READ + WRITE), ("view", READ)):
        role = cluster.get(RBAC, "clusterroles", name)
        rules = [{**rule, "verbs": verbs} for rule in TANZU]
        if role and not any(rule in role["rules"] for rule in rules):
            cluster.change(role, lambda live, rules=rules: live["rules"].extend(rules), "wcp")  # type: ignore[misc]  # mypy infers no lambda with a default
    seen = {"metadata": {"name": "vmware-system-authenticated"}}
    cluster.ensure({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", **seen, "rules": SEEN_BY_ALL}, "wcp")
    cluster.ensure(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            **seen,
            "subjects": [{"kind": "Group", "name": "system:authenticated", "apiGroup": RBAC}],
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "vmware-system-authenticated"},
        },
        "wcp",
    )


def bindings(namespace: str, access: Iterable[tuple[str, str, str]]) -> list[Object]:
    """The role bindings of an access list of (kind, name@domain, role)."""
    return [_binding(namespace, kind, subject, role) for kind, subject, role in access]


def _binding(namespace: str, kind: str, subject: str, role: str) -> Object:
    name, _, domain = subject.partition("@")
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"wcp:{namespace}:{kind.lower()}:{domain}:{name}", "namespace": namespace},
        "subjects": [
            {"kind": "Group" if kind == "GROUP" else "User", "name": f"sso:{subject}", "apiGroup": RBAC}
        ],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLES[role]},
    }
