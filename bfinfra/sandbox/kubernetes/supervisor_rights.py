"""Rights on a supervisor: namespace access lists as role bindings, and what every user may see."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.bootstrap import READ, WRITE
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.objects import Object

RBAC = "rbac.authorization.k8s.io"
ROLES = {"OWNER": "admin", "EDIT": "edit", "VIEW": "view"}
TANZU = ["run.tanzu.vmware.com", "vmoperator.vmware.com", "cluster.x-k8s.io", "addons.kubernetes.vmware.com"]
"""The groups of resources that a supervisor adds."""
READABLE_BY_ALL = [
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
        rule = {"apiGroups": TANZU, "resources": ["*"], "verbs": verbs}
        if role and rule not in role["rules"]:
            cluster.change(role, functools.partial(_cover, rule), "wcp")
    metadata = {"metadata": {"name": "vmware-system-authenticated"}}
    offered = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", **metadata, "rules": READABLE_BY_ALL}
    if cluster.ensure(offered, "wcp")["rules"] != READABLE_BY_ALL:  # an earlier sandbox made it
        cluster.change(offered, lambda role: role.update(rules=READABLE_BY_ALL), "wcp")
    cluster.ensure(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            **metadata,
            "subjects": [{"kind": "Group", "name": "system:authenticated", "apiGroup": RBAC}],
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "vmware-system-authenticated"},
        },
        "wcp",
    )


def _cover(rule: Object, role: Object) -> None:
    """Add the rule, in place of one that an earlier sandbox added."""
    others = [each for each in role["rules"] if set(TANZU).isdisjoint(each["apiGroups"])]
    role["rules"] = [*others, rule]


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
