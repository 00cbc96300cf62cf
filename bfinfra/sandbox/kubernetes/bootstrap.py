"""The contents of a fresh cluster: namespaces, the roles that everybody expects, the definitions of its own
resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster import Cluster
    from bfinfra.sandbox.kubernetes.objects import Object

RBAC = "rbac.authorization.k8s.io/v1"
READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
MANAGER = "kube-apiserver"


def bootstrap(cluster: Cluster) -> None:
    """Create what is missing of it, and add rules that a role lacks, as kube-apiserver does at its start."""
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        cluster.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, MANAGER)
    for name, rules in roles().items():
        labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
        role = cluster.ensure(
            {
                "apiVersion": RBAC,
                "kind": "ClusterRole",
                "metadata": {"name": name, "labels": labels},
                "rules": rules,
            },
            MANAGER,
        )
        _complete(cluster, role, rules)
    subjects = [{"kind": "Group", "name": "system:masters", "apiGroup": "rbac.authorization.k8s.io"}]
    reference = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "cluster-admin"},
        "subjects": subjects,
        "roleRef": reference,
    }
    cluster.ensure(binding, MANAGER)


def _complete(cluster: Cluster, role: Object, rules: list[Object]) -> None:
    more = [rule for rule in role["rules"] if rule not in rules]
    if role["rules"] != [*rules, *more]:
        cluster.change(role, lambda live: live.update(rules=[*rules, *more]), MANAGER)


def roles() -> dict[str, list[dict[str, Any]]]:
    """The default cluster roles that users are bound to, by name."""
    return {
        "cluster-admin": [_rule(["*"], ["*"], ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "admin": [
            *_edit(),
            *_secrets(),
            _rule(["rbac.authorization.k8s.io"], ["roles", "rolebindings"], READ + WRITE),
        ],
        "edit": [*_edit(), *_secrets()],
        "view": _view(),
    }


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _view() -> list[dict[str, Any]]:
    core = [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "persistentvolumeclaims",
        "pods",
        "pods/log",
        "pods/status",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ]
    return [
        _rule([""], core, READ),
        _rule(["apps"], ["*"], READ),
        _rule(
            ["batch", "autoscaling", "networking.k8s.io", "policy", "discovery.k8s.io", "events.k8s.io"],
            ["*"],
            READ,
        ),
        _rule(
            ["resource.k8s.io"], ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"], READ
        ),
    ]


def _edit() -> list[dict[str, Any]]:
    core = [
        "configmaps",
        "endpoints",
        "events",
        "persistentvolumeclaims",
        "pods",
        "serviceaccounts",
        "services",
    ]
    return [
        *_view(),
        _rule([""], core, WRITE),
        _rule(["apps", "batch", "autoscaling", "networking.k8s.io", "policy"], ["*"], WRITE),
        _rule(["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"], WRITE),
    ]


def _secrets() -> list[dict[str, Any]]:
    return [_rule([""], ["secrets"], READ + WRITE), _rule([""], ["serviceaccounts/token"], ["create"])]
