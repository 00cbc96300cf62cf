"""What an API server makes of accounts that give rights: one table, tried on the sandbox and on
kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Call = Callable[[str, str, Any], tuple[int, str]]
"""As the account: method, path and body → code and message; a PATCH is a server-side apply."""
Give = Callable[[list[Mapping[str, Any]]], None]
"""Let the account have these rules in the whole cluster, and no others."""

RBAC = "rbac.authorization.k8s.io"
OWN: list[Mapping[str, Any]] = [
    {
        "apiGroups": [RBAC],
        "resources": ["clusterroles", "clusterrolebindings"],
        "verbs": ["create", "get", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
]
HELD = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "resourceNames": ["one"]}
MORE = [
    {"apiGroups": ["", "apps"], "resources": ["secrets", "pods"], "verbs": ["get", "list"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["a", "b"], "verbs": ["get"]},
    {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
]
LACKING = """ is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}
{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["a"], Verbs:["get"]}
{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["b"], Verbs:["get"]}
{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}
{APIGroups:["apps"], Resources:["secrets"], Verbs:["get" "list"]}
{NonResourceURLs:["/metrics"], Verbs:["get"]}"""


def what_gives_rights_is_held_to_what_its_maker_has(call: Call, give: Give, name: str) -> None:
    """`name`: of the account, and of what it makes."""
    roles, bindings = (f"/apis/{RBAC}/v1/{each}" for each in ("clusterroles", "clusterrolebindings"))

    def role(*rules: Any, label: str = "a") -> Any:
        return {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"team": label}},
            "rules": list(rules),
        }

    def allowing(verb: str, *names: str) -> None:
        give(
            [
                *OWN,
                {
                    "apiGroups": [RBAC],
                    "resources": ["clusterroles"],
                    "verbs": [verb],
                    **({"resourceNames": list(names)} if names else {}),
                },
            ]
        )

    def refused(answer: tuple[int, str], plural: str) -> None:
        code, message = answer
        assert (code, message.partition(" (groups=")[0]) == (
            403,
            f'{plural}.{RBAC} "{name}" is forbidden: user "system:serviceaccount:default:{name}"',
        )
        assert message.endswith(LACKING), message

    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": "default"}],
    }
    give(OWN)
    assert call("POST", bindings, binding)[0] == 404
    assert call("POST", roles, role(HELD))[0] == 201
    assert call("DELETE", f"{roles}/{name}", None)[0] == 200
    refused(call("POST", roles, role(*MORE)), "clusterroles")
    allowing("escalate", name)
    refused(call("POST", roles, role(*MORE)), "clusterroles")  # a POST has no name
    assert call("PATCH", f"{roles}/{name}", role(*MORE))[0] == 201
    refused(call("POST", bindings, binding), "clusterrolebindings")
    give(OWN)
    assert call("PATCH", f"{roles}/{name}", role(*MORE))[0] == 200  # it changes nothing
    refused(call("PATCH", f"{roles}/{name}", role(*MORE, label="b")), "clusterroles")
    allowing("bind", name)
    assert call("POST", bindings, binding)[0] == 201
    give(OWN)
    refused(
        call("PATCH", f"{bindings}/{name}", {**binding, "metadata": {"name": name, "labels": {"team": "b"}}}),
        "clusterrolebindings",
    )
    for each in (bindings, roles):
        assert call("DELETE", f"{each}/{name}", None)[0] == 200
    allowing("escalate")
    assert call("POST", roles, role(*MORE))[0] == 201
    assert call("DELETE", f"{roles}/{name}", None)[0] == 200


REFUSED = [
    (
        "GET",
        "/apis/kubeflow.org/v9/mpijobs",
        (
            'mpijobs.kubeflow.org is forbidden: User "{}" cannot list resource "mpijobs" in API group '
            '"kubeflow.org" at the cluster scope'
        ),
    ),
    (
        "GET",
        "/apis/kubeflow.org/v9/namespaces/default/mpijobs/x",
        (
            'mpijobs.kubeflow.org "x" is forbidden: User "{}" cannot get resource "mpijobs" in API group '
            '"kubeflow.org" in the namespace "default"'
        ),
    ),
    (
        "GET",
        "/api/v1/nodes?watch=1",
        'nodes is forbidden: User "{}" cannot watch resource "nodes" in API group "" at the cluster scope',
    ),
    (
        "GET",
        "/api/v1/namespaces/default",
        (
            'namespaces "default" is forbidden: User "{}" cannot get resource "namespaces" in API group "" '
            'in the namespace "default"'
        ),
    ),
    (
        "GET",
        "/api/v1/namespaces/default/status",
        (
            'namespaces "default" is forbidden: User "{}" cannot get resource "namespaces/status" in API '
            'group "" in the namespace "default"'
        ),
    ),
    (
        "GET",
        "/api/v1/namespaces/default/pods/x/nothing",
        (
            'pods "x" is forbidden: User "{}" cannot get resource "pods/nothing" in API group "" in the '
            'namespace "default"'
        ),
    ),
    (
        "DELETE",
        "/api/v1/secrets",
        (
            'secrets is forbidden: User "{}" cannot deletecollection resource "secrets" in API group "" at '
            "the cluster scope"
        ),
    ),
]


def rights_are_asked_for_before_what_is_served(call: Call, give: Give, name: str) -> None:
    """Whether there is such a resource, or it takes the verb, is answered only to who may ask for it."""
    give([])
    for method, path, words in REFUSED:
        assert call(method, path, None) == (
            403,
            words.replace("{}", f"system:serviceaccount:default:{name}"),
        ), path
    give([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    assert [call(method, path, None)[0] for method, path, _ in REFUSED[:2]] == [404, 404]


TABLE = (what_gives_rights_is_held_to_what_its_maker_has, rights_are_asked_for_before_what_is_served)
