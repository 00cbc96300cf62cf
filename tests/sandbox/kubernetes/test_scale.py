"""The scale subresource, and the refusal by name of subresources that the sandbox hasn't."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from kube_serving import Served

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "x"}]},
        },
    },
}
MERGE = {"content-type": "application/merge-patch+json"}


@pytest.fixture
def web(served: Served, http: httpx2.Client) -> str:
    assert http.post(DEPLOYMENTS, json=WEB).status_code == 201
    return f"{DEPLOYMENTS}/web"


def replicas(http: httpx2.Client, web: str) -> Any:
    return http.get(web).json()["spec"]["replicas"]


def test_it_is_a_scale_of_the_object(http: httpx2.Client, web: str) -> None:
    found = http.get(f"{web}/scale").json()
    assert (found["kind"], found["apiVersion"], found["spec"], found["status"]["selector"]) == (
        "Scale",
        "autoscaling/v1",
        {"replicas": 2},
        "app=web",
    )
    assert found["metadata"]["name"] == "web"


def test_replacing_and_patching_it_scales(http: httpx2.Client, web: str) -> None:
    found = http.get(f"{web}/scale").json()
    answer = http.put(f"{web}/scale", json={**found, "spec": {"replicas": 5}})
    assert (answer.json()["kind"], answer.json()["spec"], replicas(http, web)) == (
        "Scale",
        {"replicas": 5},
        5,
    )
    assert http.patch(f"{web}/scale", json={"spec": {"replicas": 3}}, headers=MERGE).json()["spec"] == {
        "replicas": 3
    }
    assert replicas(http, web) == 3
    template = http.get(web).json()["spec"]["template"]["spec"]["containers"][0]
    assert (template["name"], template["image"]) == ("a", "x")


def test_a_stale_one_and_a_wrong_one_are_refused(http: httpx2.Client, web: str) -> None:
    stale = http.get(f"{web}/scale").json()
    http.put(f"{web}/scale", json={**stale, "spec": {"replicas": 5}})
    assert http.put(f"{web}/scale", json={**stale, "spec": {"replicas": 1}}).status_code == 409
    assert http.patch(f"{web}/scale", json={"spec": {"replicas": -1}}, headers=MERGE).status_code == 400
    assert (
        http.patch(
            f"{web}/scale", json={"spec": {"replicas": 1}}, headers={"content-type": "text/plain"}
        ).status_code
        == 415
    )
    assert http.get(f"{DEPLOYMENTS}/none/scale").status_code == 404
    assert replicas(http, web) == 5


@pytest.mark.parametrize("subresource", ["exec", "portforward", "binding"])
def test_other_subresources_are_refused_by_name(subresource: str, http: httpx2.Client) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    }
    assert http.post(pods, json=pod).status_code == 201
    before = http.get(f"{pods}/p").json()
    answer = http.post(f"{pods}/p/{subresource}", json={"metadata": {"name": "p"}})
    assert (answer.status_code, answer.json()["reason"]) == (501, "NotImplemented")
    assert f"subresource {subresource} of pods" in answer.json()["message"]
    assert http.get(f"{pods}/p").json() == before
