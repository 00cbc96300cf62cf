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

RBAC = "rbac.authorization.k8s.io"
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group: str) -> dict[str, Any]:
    """Objects called as an MPI operator calls its own."""
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
    names = {"kind": "MPIJob", "listKind": "MPIJobList", "plural": "mpijobs", "singular": "mpijob"}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"mpijobs.{group}"},
        "spec": spec,
    }


@call(
    "cluster.versions",
    "cluster.create",
    "cluster.list",
    "cluster.patch",
    "cluster.apply",
    "cluster.delete",
    case="a kind of one's own, from its definition to its end",
)
def test_the_life_of_a_kind_of_ones_own(kubernetes: KubernetesSide, space: str) -> None:
    cluster, group, site = (
        kubernetes.open(),
        f"contract{kubernetes.own}.example.com",
        f"lives{kubernetes.own}",
    )
    assert cluster.versions(group) == ()
    mark = Mark(site, "mpi_operator/x")
    crd = marked(definition(group), mark)
    cluster.create(crd)
    kubernetes.until(lambda: cluster.serves(f"{group}/v2beta1", "MPIJob"))
    assert cluster.versions(group) == ("v2beta1",)
    crd["metadata"]["annotations"] |= {"b": "2"}
    kubernetes.until(lambda: applied(cluster, crd))
    job = {
        "apiVersion": f"{group}/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "life", "namespace": space},
        "spec": {"slotsPerWorker": 1},
    }
    made = cluster.create(marked(job, Mark(site, "mpi_job/life")))
    assert [
        each["metadata"]["uid"] for each in cluster.list(f"{group}/v2beta1", "MPIJob", labels=selector(site))
    ] == [made["metadata"]["uid"]]
    cluster.patch(f"{group}/v2beta1", "MPIJob", "life", {"metadata": {"annotations": {"a": "1"}}}, space)
    after = cluster.get(f"{group}/v2beta1", "MPIJob", "life", space)
    assert after
    assert (after["metadata"]["annotations"]["a"], after["spec"]) == ("1", {"slotsPerWorker": 1})
    cluster.delete(f"{group}/v2beta1", "MPIJob", "life", space)
    kubernetes.until(lambda: cluster.get(f"{group}/v2beta1", "MPIJob", "life", space) is None)
    cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"mpijobs.{group}")
    kubernetes.until(
        lambda: cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"mpijobs.{group}") is None
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
