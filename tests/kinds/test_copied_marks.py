"""What somebody copied with its mark, as `kubectl get -o yaml` into `kubectl apply` does, is theirs: under
another name, in another namespace.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from at_cluster import Site

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "a", "image": "busybox", "command": ["sleep", "9"]}],
            }
        }
    },
}
SERVER_SIDE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


@pytest.fixture
def site(tmp_path, api, space):
    made = Site(tmp_path, api)
    (tmp_path / "w.yaml").write_text(yaml.safe_dump(JOB))
    home = {"cluster": "k", "namespaces": [space]}
    made.resources = {
        "namespace": {"team": {"cluster": "k", "namespace": f"{made.name}-team"}},
        "token_secret": {"t": {**home, "token": "tok"}},
        "workload": {"w": {"cluster": "k", "namespace": space, "manifest": "w.yaml"}},
    }
    made.applied()
    yield made
    made.resources = {}
    made.apply()


def copied(cluster: Any, obj: dict[str, Any], **place: str) -> dict[str, Any]:
    """The object again elsewhere, with all that kubectl would bring along."""
    again = copy.deepcopy({key: value for key, value in obj.items() if key != "status"})
    again["metadata"] = {
        key: value for key, value in again["metadata"].items() if key not in SERVER_SIDE
    } | place
    if again["kind"] == "Job":
        again["spec"].pop("selector", None)
        again["spec"]["template"]["metadata"].pop("labels", None)
    made: dict[str, Any] = cluster.create(again)
    return made


def token_secret(cluster: Any, space: str) -> dict[str, Any]:
    """One of the site's Secrets of its token."""
    secrets: list[dict[str, Any]] = cluster.list("v1", "Secret", space)
    return next(o for o in secrets if o["metadata"]["name"].startswith("bitfusion-client-secret"))


def copies(site: Site, cluster: Any, space: str) -> list[dict[str, Any]]:
    secret = token_secret(cluster, space)
    record = next(
        o
        for o in cluster.list("v1", "ConfigMap", space)
        if "bfinfra.io/mark" in (o["metadata"].get("annotations") or {})
    )
    other = f"{site.name}-theirs"
    found = [copied(cluster, cluster.get("v1", "Namespace", f"{site.name}-team"), name=other)]
    for obj in (secret, record, cluster.get("batch/v1", "Job", "train", space)):
        found += [
            copied(cluster, obj, name=f"{obj['metadata']['name']}-2"),
            copied(cluster, obj, namespace=other),
        ]
    return found


def as_they_are(cluster: Any, objects: list[dict[str, Any]]) -> list[Any]:
    places = [
        (o["apiVersion"], o["kind"], o["metadata"]["name"], o["metadata"].get("namespace", ""))
        for o in objects
    ]
    now = [cluster.get(*place) for place in places]
    return [
        (
            o["metadata"]["uid"],
            o["metadata"].get("annotations"),
            o["metadata"].get("labels"),
            o["metadata"].get("deletionTimestamp"),
        )
        if o
        else None
        for o in now
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["apply", "replace", "prune", "destroy"])
def test_what_was_copied_with_its_mark_stays_whatever_happens_to_the_original(how, site, cluster, space):
    theirs = copies(site, cluster, space)
    before = as_they_are(cluster, theirs)
    assert None not in before
    assert site.plan().pending == ()
    if how == "replace":
        site.resources["namespace"]["team"]["namespace"] = f"{site.name}-moved"
    if how == "prune":
        site.resources = {}
    site.applied(**({"destroy": True} if how == "destroy" else {}))
    assert as_they_are(cluster, theirs) == before
    if how in ("prune", "destroy"):
        assert cluster.get("batch/v1", "Job", "train", space) is None


def test_the_plan_lists_a_copy_among_what_goes_with_its_namespace(site, cluster, space):
    secret = token_secret(cluster, space)
    theirs = copied(cluster, secret, namespace=f"{site.name}-team")
    del site.resources["namespace"]
    assert any(theirs["metadata"]["name"] in each for each in site.item("namespace/team").contents)
    cluster.delete("v1", "Secret", theirs["metadata"]["name"], theirs["metadata"]["namespace"])


def test_a_copy_where_ours_shall_go_is_refused_until_it_is_adopted(site, cluster, space):
    copies(site, cluster, space)
    site.resources["token_secret"]["t"]["namespaces"].append(f"{site.name}-theirs")
    assert any("bfinfra adopt" in str(problem) for problem in site.plan().problems)
    site.resources["token_secret"]["t"]["namespaces"].pop()
