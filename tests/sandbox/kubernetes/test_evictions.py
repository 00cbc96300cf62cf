"""The eviction subresource deletes a pod, unless its disruption budget allows none to go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from kube_api import HeldClock
from kube_serving import http_of
from waiting import until

from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

HOME = "/api/v1/namespaces/default"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def held() -> HeldClock:
    """While it is held, no pod starts."""
    return HeldClock()


@pytest.fixture
def http(held: HeldClock, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    running = RunningCluster("g", "v1.34.1", held, Outside(durations={"pod": 1}))
    running.start()
    running.add_node("n1", cpus=8, memory=2**35, version="v1.34.1")
    with http_of(running.cluster, listeners, pki) as client:
        until(lambda: client.get(f"{HOME}/serviceaccounts/default").status_code == 200)
        yield client
    running.cluster.close()


def pods(http: httpx2.Client, count: int) -> list[str]:
    """Pods of one app, once they run."""
    pod = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    spec = {"replicas": count, "selector": {"matchLabels": {"app": "a"}}, "template": pod}
    assert http.post(SETS, json={"metadata": {"name": "s"}, "spec": spec}).status_code == 201
    until(lambda: [pod["status"].get("phase") for pod in listed(http)] == ["Running"] * count)
    return [pod["metadata"]["name"] for pod in listed(http)]


def listed(http: httpx2.Client) -> list[Any]:
    return list(http.get(f"{HOME}/pods").json()["items"])


def budget(http: httpx2.Client, **fields: Any) -> None:
    spec = {"selector": {"matchLabels": {"app": "a"}}, **fields}
    assert http.post(BUDGETS, json={"metadata": {"name": "b"}, "spec": spec}).status_code == 201


def evicted(http: httpx2.Client, name: str) -> httpx2.Response:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return http.post(f"{HOME}/pods/{name}/eviction", json=body)


def test_a_pod_without_a_budget_goes(http):
    (name,) = pods(http, 1)
    answer = evicted(http, name)
    assert (answer.status_code, answer.json()["status"]) == (201, "Success")
    until(lambda: name not in [pod["metadata"]["name"] for pod in listed(http)])
    assert evicted(http, name).status_code == 404


@pytest.mark.parametrize(
    ("fields", "go"),
    [
        ({"minAvailable": 2}, 1),
        ({"minAvailable": "100%"}, 0),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "34%"}, 2),
        ({"maxUnavailable": 0}, 0),
    ],
)
def test_a_budget_lets_as_many_go_as_it_says(http, held, fields, go):
    names = pods(http, 3)
    budget(http, **fields)
    held.held = True
    answers = [evicted(http, name) for name in names]
    assert [answer.status_code for answer in answers] == [201] * go + [429] * (3 - go)
    refused = answers[-1].json()
    assert refused["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused["details"]["causes"][0]["reason"] == "DisruptionBudget"
