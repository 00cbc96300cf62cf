"""Each kind of object that sites are made of, through its life: made, read, listed, changed by patch and by
apply, removed.
"""

from __future__ import annotations

from typing import Any

import pytest
from contract.calls import Account, applied, call, created
from contract.sides import KubernetesSide

from bfinfra.backends.kubernetes.marks import marked, selector
from bfinfra.model.errors import Rejected
from bfinfra.model.mark import Mark

POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}
LABELS = {"app": "contract"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": POD["containers"]}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
OBJECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "Secret": ("v1", {"type": "Opaque", "data": {"a": "MQ=="}}),
    "ConfigMap": ("v1", {"data": {"a": "1"}}),
    "Service": ("v1", {"spec": {"selector": LABELS, "ports": [{"name": "one", "port": 80}]}}),
    "ServiceAccount": ("v1", {}),
    "Pod": ("v1", {"spec": POD}),
    "PersistentVolumeClaim": ("v1", {"spec": CLAIM}),
    "ResourceQuota": ("v1", {"spec": {"hard": {"pods": "9"}}}),
    "Job": ("batch/v1", {"spec": {"suspend": True, "template": {"spec": POD}}}),
    "Deployment": (
        "apps/v1",
        {"spec": {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    ),
    "DaemonSet": ("apps/v1", {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}}),
    "StatefulSet": (
        "apps/v1",
        {
            "spec": {
                "replicas": 0,
                "serviceName": "s",
                "selector": {"matchLabels": LABELS},
                "template": TEMPLATE,
            }
        },
    ),
    "Role": ("rbac.authorization.k8s.io/v1", {"rules": RULES}),
}

RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io/v1"
HOOK = {
    "name": "hook.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "failurePolicy": "Ignore",
    "clientConfig": {"url": "https://hook.invalid/"},
    "namespaceSelector": {"matchLabels": {"nobody": "has-this"}},
    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
}
WIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "ClusterRole": (f"{RBAC}/v1", {"rules": RULES}),
    "ClusterRoleBinding": (
        f"{RBAC}/v1",
        {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "nothing"}, "subjects": []},
    ),
    "ValidatingWebhookConfiguration": (ADMISSION, {"webhooks": [HOOK]}),
    "MutatingWebhookConfiguration": (ADMISSION, {"webhooks": [HOOK]}),
}


@pytest.mark.parametrize("kind", OBJECTS)
@call(
    "cluster.create",
    "cluster.get",
    "cluster.list",
    "cluster.find",
    "cluster.patch",
    "cluster.apply",
    "cluster.delete",
    case="the life of each kind of object",
)
def test_the_life_of_an_object(kind: str, kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    api, body = OBJECTS[kind]
    site = f"lives{kubernetes.own}"
    thing = marked(
        {"apiVersion": api, "kind": kind, "metadata": {"name": "life", "namespace": space}, **body},
        Mark(site, "workload/life"),
    )
    made = kubernetes.until(lambda: created(cluster, thing))
    (listed,) = cluster.list(api, kind, space, selector(site))
    (found,) = cluster.find(api, kind, [(space, "life"), *((space, f"n{n}") for n in range(5))], space)
    assert made["metadata"]["uid"] == listed["metadata"]["uid"] == found["metadata"]["uid"]
    cluster.patch(api, kind, "life", {"metadata": {"annotations": {"a": "1"}}}, space)
    wanted = {
        **thing,
        "metadata": {
            **thing["metadata"],
            "annotations": {**thing["metadata"].get("annotations", {}), "b": "2"},
        },
    }
    kubernetes.until(lambda: applied(cluster, wanted))
    after = cluster.get(api, kind, "life", space)
    assert after
    assert (after["metadata"]["uid"], after["metadata"]["annotations"]["b"]) == (made["metadata"]["uid"], "2")
    cluster.delete(api, kind, "life", space)
    kubernetes.until(lambda: cluster.get(api, kind, "life", space) is None)


@call(
    "cluster.create",
    "cluster.get",
    "cluster.list",
    "cluster.patch",
    "cluster.apply",
    "cluster.delete",
    case="the life of a namespace",
)
def test_the_life_of_a_namespace_in_a_cluster(kubernetes: KubernetesSide) -> None:
    cluster, name, site = kubernetes.open(), f"contract-life{kubernetes.own}", f"lives{kubernetes.own}"
    thing = marked(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, Mark(site, "namespace/life")
    )
    made = cluster.create(thing)
    assert [o["metadata"]["name"] for o in cluster.list("v1", "Namespace", labels=selector(site))] == [name]
    cluster.patch("v1", "Namespace", name, {"metadata": {"labels": {"team": "a"}}})
    cluster.apply(
        {**thing, "metadata": {**thing["metadata"], "labels": {**thing["metadata"]["labels"], "team": "b"}}},
        force=True,
    )
    after = cluster.get("v1", "Namespace", name)
    assert after
    assert (after["metadata"]["uid"], after["metadata"]["labels"]["team"]) == (made["metadata"]["uid"], "b")
    cluster.delete("v1", "Namespace", name)
    kubernetes.until(lambda: cluster.get("v1", "Namespace", name) is None)


@pytest.mark.parametrize("kind", WIDE)
@call(
    "cluster.create",
    "cluster.get",
    "cluster.list",
    "cluster.patch",
    "cluster.apply",
    "cluster.delete",
    case="the life of each kind of object of the whole cluster",
)
def test_the_life_of_an_object_of_the_cluster(kind: str, kubernetes: KubernetesSide) -> None:
    cluster, name, site = kubernetes.open(), f"contract-life{kubernetes.own}", f"lives{kubernetes.own}"
    api, body = WIDE[kind]
    thing = marked(
        {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **body},
        Mark(site, "bitfusion_device_plugin/life"),
    )
    made = cluster.create(thing)
    assert [o["metadata"]["uid"] for o in cluster.list(api, kind, labels=selector(site))] == [
        made["metadata"]["uid"]
    ]
    cluster.patch(api, kind, name, {"metadata": {"labels": {"team": "a"}}})
    cluster.apply(
        {**thing, "metadata": {**thing["metadata"], "labels": {**thing["metadata"]["labels"], "team": "b"}}},
        force=True,
    )
    after = cluster.get(api, kind, name)
    assert after
    assert (after["metadata"]["uid"], after["metadata"]["labels"]["team"]) == (made["metadata"]["uid"], "b")
    cluster.delete(api, kind, name)
    assert cluster.get(api, kind, name) is None


@pytest.mark.parametrize("version", ["", "v2"])
@call("cluster.create", case="a webhook that is asked in no version that the server speaks")
def test_a_webhook_without_a_version_of_reviews(
    version: str, kubernetes: KubernetesSide, account: Account
) -> None:
    hook = {**HOOK, "admissionReviewVersions": [version] if version else []}
    with account.refused(Rejected):
        kubernetes.open().create(
            {
                "apiVersion": ADMISSION,
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": f"contract{kubernetes.own}"},
                "webhooks": [hook],
            }
        )


@call("cluster.create", case="a webhook with side effects that a dry run would have")
def test_a_webhook_with_side_effects(kubernetes: KubernetesSide, account: Account) -> None:
    hook = {**HOOK, "sideEffects": "Some"}
    with account.refused(Rejected):
        kubernetes.open().create(
            {
                "apiVersion": ADMISSION,
                "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": f"contract{kubernetes.own}"},
                "webhooks": [hook],
            }
        )


@call("cluster.list", case="the nodes of a cluster")
def test_nodes_are_listed_with_what_they_have(kubernetes: KubernetesSide) -> None:
    nodes = kubernetes.open().list("v1", "Node")
    ours = [each for each in nodes if "kubernetes.io/hostname" in each["metadata"].get("labels", {})]
    assert ours, "others' tests make nodes without labels"
    assert all("allocatable" in node["status"] for node in ours)
