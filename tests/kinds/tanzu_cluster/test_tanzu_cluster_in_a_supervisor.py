"""A Tanzu cluster written to an API server with a definition of its own: what a real server makes of
creating, applying and deleting.
"""

from __future__ import annotations

import uuid

import pytest
from kube_api import somebody_patches
from waiting import until

from bfinfra.kinds.supervisor.tanzu_cluster.forms import TANZU as KIND
from bfinfra.kinds.supervisor.tanzu_cluster.kind import TanzuCluster
from bfinfra.kinds.supervisor.tanzu_cluster.spec import V1ALPHA1 as API
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

NODES = {"vm_class": "small", "storage_class": "gold"}
GROUP = "run.tanzu.vmware.com"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"tanzukubernetesclusters.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "kind": KIND,
            "listKind": f"{KIND}List",
            "plural": "tanzukubernetesclusters",
            "singular": "tanzukubernetescluster",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


class Place:
    """One namespace of the API taken for a supervisor namespace."""

    def __init__(self, clusters, endpoint, space):
        self.kind = TanzuCluster(clusters)
        self.key = Key("supervisor_namespace", space)
        self.state = type("Standing", (), {"endpoint": endpoint})()

    def needs(self):
        return {self.key: ResolvedRef(self.key, None, self.state)}

    def see(self, spec, **how):
        return self.kind.observe({"c": spec}, self.needs(), **how)

    def steps(self, spec):
        seen = self.see(spec)
        context = PlanContext(
            Mark("poc", "tanzu_cluster/c"),
            {"namespace": ResolvedRef(self.key, None, self.state)},
            facts=seen.facts,
        )
        return self.kind.steps("c", spec, seen.states.get("c"), context)

    def settle(self, spec):
        for step in self.steps(spec):
            self.kind.run(step, lambda _: None)
        assert not self.steps(spec)


@pytest.fixture
def place(cluster, clusters, api, space):
    if (
        cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", DEFINITION["metadata"]["name"])
        is None
    ):
        cluster.create(DEFINITION)
    until(lambda: served(cluster))
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": space, "namespace": space},
            "spec": {"hard": {"gold.storageclass.storage.k8s.io/requests.storage": "1Ti"}},
        }
    )
    return Place(clusters, Endpoint(kubeconfig=api.secret(), namespace=space), space)


def served(cluster):
    conditions = (
        cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", DEFINITION["metadata"]["name"])
        .get("status", {})
        .get("conditions")
        or []
    )
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def written(space, count=3, **changes):
    fields = {
        "namespace": space,
        "version": "v1.20.2",
        "control_plane": {"count": 1, **NODES},
        "workers": {"w": {"count": count, **NODES}},
    }
    return Spec.model_validate({**fields, **changes})


def test_created_scaled_mended_and_deleted(place, cluster, space):
    place.settle(written(space))
    place.settle(written(space, count=5))
    assert cluster.get(API, KIND, "c", space)["spec"]["topology"]["workers"]["count"] == 5
    path = f"../../apis/{GROUP}/v1alpha1/namespaces/{space}/tanzukubernetesclusters/c"
    somebody_patches(cluster, path, {"spec": {"topology": {"workers": {"count": 1}}}})
    (step,) = place.steps(written(space, count=5))
    assert step.changes == (Change("workers.w.count", 1, 5),)
    place.settle(written(space, count=5))
    place.settle(None)
    assert place.see(None).states == {}


def test_what_leaves_the_file_leaves_the_cluster(place, cluster, space):
    place.settle(written(space, default_storage_class="gold"))
    place.settle(written(space))
    assert "settings" not in cluster.get(API, KIND, "c", space)["spec"]


def test_a_strangers_cluster_bears_no_mark_and_other_sites_are_left_out(place, cluster, space):
    node = {"count": 1, "class": "best-effort-small", "storageClass": "gold"}
    spec = {"distribution": {"version": "v1.20.2"}, "topology": {"controlPlane": node, "workers": node}}
    body = {"apiVersion": API, "kind": KIND, "metadata": {"name": "c", "namespace": space}, "spec": spec}
    cluster.create(body)
    assert place.see(written(space)).states["c"].mark is None
    cluster.create({**body, "metadata": {"name": uuid.uuid4().hex, "namespace": space}})
    assert set(place.see(written(space)).states) == {"c"}
