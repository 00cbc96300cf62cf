"""What a cluster reports of a site's objects while they are followed."""

from __future__ import annotations

from typing import Any

from contract.calls import call
from contract.sides import KubernetesSide

from bfinfra.backends.kubernetes.changes import ObjectChanges
from bfinfra.backends.kubernetes.cluster import Selected


def config(space: str, name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": space, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


@call("cluster.json", "cluster.lines", case="objects with a label come, change and go")
def test_objects_with_a_label_are_followed(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    changes = ObjectChanges(cluster, Selected("v1", "ConfigMap", space, "team=a"))
    changes.start()
    cluster.create(config(space, "first", team="a"))
    cluster.create(config(space, "other", team="b"))
    cluster.delete("v1", "ConfigMap", "first", space)
    seen: list[str] = []
    changes.wait(2, lambda found: seen.append(found["metadata"]["name"]))
    assert seen == ["first", "first"]
