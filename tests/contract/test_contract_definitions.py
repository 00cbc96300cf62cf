"""What has no namespace: a kind of object of one's own, from its definition to its end, and roles for the
whole cluster.
"""

from __future__ import annotations

from typing import Any

import pytest
from contract.calls import applied, call
from contract.sides import KubernetesSide

from bfinfra.backends.kubernetes.marks import marked, selector
from bfinfra.model.mark import Mark

CRD_API = "apiextensions.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"
PLURALS = {
    "MPIJob": "mpijobs",
    "Queue": "queues",
    "ClusterPolicy": "clusterpolicies",
    "GPUCluster": "gpuclusters",
    "NVIDIADriver": "nvidiadrivers",
}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group: str, kind: str) -> dict[str, Any]:
    """Objects called as an operator calls its own."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"slotsPerWorker": {"type": "integer", "minimum": 1}}},
            "status": FREE,
        },
    }
    version = {
        "name": "v2beta1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": PLURALS[kind], "singular": kind.lower()}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    return {
        "apiVersion": CRD_API,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURALS[kind]}.{group}"},
        "spec": spec,
    }


@pytest.mark.parametrize("kind", PLURALS)
@call(
    "cluster.versions",
    "cluster.create",
    "cluster.list",
    "cluster.patch",
    "cluster.apply",
    "cluster.delete",
    case="a kind of one's own, from its definition to its end",
)
def test_the_life_of_a_kind_of_ones_own(kind: str, kubernetes: KubernetesSide, space: str) -> None:
    cluster, group, site = (
        kubernetes.open(),
        f"contract{kubernetes.own}.example.com",
        f"lives{kubernetes.own}",
    )
    assert cluster.versions(group) == ()
    mark = Mark(site, "mpi_operator/x")
    crd = marked(definition(group, kind), mark)
    cluster.create(crd)
    kubernetes.until(lambda: cluster.serves(f"{group}/v2beta1", kind))
    (listed,) = cluster.list(CRD_API, "CustomResourceDefinition", labels=selector(site))
    assert listed["metadata"]["name"] == crd["metadata"]["name"]
    assert cluster.versions(group) == ("v2beta1",)
    crd["metadata"]["annotations"] |= {"b": "2"}
    kubernetes.until(lambda: applied(cluster, crd))
    job = {
        "apiVersion": f"{group}/v2beta1",
        "kind": kind,
        "metadata": {"name": "life", "namespace": space},
        "spec": {"slotsPerWorker": 1},
    }
    made = cluster.create(marked(job, Mark(site, "mpi_job/life")))
    assert [
        each["metadata"]["uid"] for each in cluster.list(f"{group}/v2beta1", kind, labels=selector(site))
    ] == [made["metadata"]["uid"]]
    cluster.patch(f"{group}/v2beta1", kind, "life", {"metadata": {"annotations": {"a": "1"}}}, space)
    after = cluster.get(f"{group}/v2beta1", kind, "life", space)
    assert after
    assert (after["metadata"]["annotations"]["a"], after["spec"]) == ("1", {"slotsPerWorker": 1})
    cluster.delete(f"{group}/v2beta1", kind, "life", space)
    kubernetes.until(lambda: cluster.get(f"{group}/v2beta1", kind, "life", space) is None)
    cluster.delete(CRD_API, "CustomResourceDefinition", crd["metadata"]["name"])
    kubernetes.until(
        lambda: cluster.get(CRD_API, "CustomResourceDefinition", crd["metadata"]["name"]) is None
    )


ROLE = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
BODIES = {
    "ClusterRole": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "ClusterRoleBinding": {
        "roleRef": ROLE,
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    },
}


@pytest.mark.parametrize("kind", BODIES)
@call(
    "cluster.create",
    "cluster.get",
    "cluster.apply",
    "cluster.delete",
    case="the life of a role for the whole cluster",
)
def test_the_life_of_a_role(kind: str, kubernetes: KubernetesSide) -> None:
    cluster, name = kubernetes.open(), f"contract-life{kubernetes.own}"
    thing = marked(
        {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name}, **BODIES[kind]},
        Mark("lives", "mpi_operator/x"),
    )
    made = cluster.create(thing)
    thing["metadata"]["annotations"] |= {"b": "2"}
    kubernetes.until(lambda: applied(cluster, thing))
    after = cluster.get(f"{RBAC}/v1", kind, name)
    assert after
    assert (after["metadata"]["uid"], after["metadata"]["annotations"]["b"]) == (made["metadata"]["uid"], "2")
    cluster.delete(f"{RBAC}/v1", kind, name)
    assert cluster.get(f"{RBAC}/v1", kind, name) is None


@call(
    "cluster.create",
    "cluster.list",
    "cluster.get",
    "cluster.patch",
    "cluster.delete",
    case="a node is labelled, and cordoned",
)
def test_a_node_is_labelled_and_cordoned(kubernetes: KubernetesSide) -> None:
    cluster, name = kubernetes.open(), f"contract-node{kubernetes.own}"
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    body = {"metadata": {"labels": {"a": "1"}}, "spec": {"unschedulable": True}}
    after = cluster.patch("v1", "Node", name, body)
    assert (after["metadata"]["labels"]["a"], after["spec"]["unschedulable"]) == ("1", True)
    assert [each["metadata"]["name"] for each in cluster.list("v1", "Node", labels="a=1")] == [name]
    assert cluster.get("v1", "Node", name)
    cluster.delete("v1", "Node", name)
    kubernetes.until(lambda: cluster.get("v1", "Node", name) is None)
