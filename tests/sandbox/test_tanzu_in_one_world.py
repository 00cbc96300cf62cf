"""REST, login, supervisor and guest clusters are one world: a namespace made in vCenter takes a cluster that
opens its own address.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asking import Answer, Https, Rest, basic, control, generated, read
from waiting import until

from bfinfra.sandbox import SMALL_WORLD, Running, running, start, stop

TANZU = "/apis/run.tanzu.vmware.com/v1alpha1/namespaces/ns/tanzukubernetesclusters"
CLUSTER = {
    "apiVersion": "run.tanzu.vmware.com/v1alpha1",
    "kind": "TanzuKubernetesCluster",
    "metadata": {"name": "c1"},
    "spec": {
        "distribution": {"version": "v1.20.2"},
        "topology": {
            "controlPlane": {"count": 1, "class": "best-effort-small", "storageClass": "gold"},
            "workers": {"count": 2, "class": "best-effort-small", "storageClass": "gold"},
        },
    },
}


def ask(
    world: Running, host: str, port: int, method: str, path: str, headers: dict[str, str], body: Any = None
) -> Answer:
    there = world.lookup(host, port)
    assert there, f"{host}:{port} is not open"
    client = Https(host, there[1], str(world.ca_file))
    try:
        client.request(
            method,
            path,
            None if body is None else json.dumps(body),
            {"Content-Type": "application/json", **headers},
        )
        return read(client)
    finally:
        client.close()


def bearer(world: Running, user: str, password: str, guest: bool = False) -> dict[str, str]:
    body = {"guest_cluster_name": "c1", "guest_cluster_namespace": "ns"} if guest else None
    answer = ask(world, "10.1.0.1", 443, "POST", "/wcp/login", basic(user, password), body)
    assert answer.status == 200, answer
    return {"Authorization": f"Bearer {answer.data['session_id']}"}


def namespace(world: Running) -> None:
    rest = Rest(world)
    cluster = rest.get("/api/vcenter/namespace-management/clusters")[0]["cluster"]
    policy = next(
        each["policy"] for each in rest.get("/api/vcenter/storage/policies") if each["name"] == "gold"
    )
    answer = rest.call(
        "POST",
        "/api/vcenter/namespaces/instances",
        {
            "cluster": cluster,
            "namespace": "ns",
            "storage_specs": [{"policy": policy}],
            "vm_service_spec": {"vm_classes": ["best-effort-small"]},
            "access_list": [
                {"subject_type": "GROUP", "subject": "devs", "domain": "small.test", "role": "EDIT"}
            ],
        },
    )
    assert answer.status == 204
    until(lambda: rest.get("/api/vcenter/namespaces/instances/ns")["config_status"] == "RUNNING")


def cluster_runs(world: Running) -> str:
    """The guest's address, once the developer's cluster runs."""
    mine = bearer(world, "dev@small.test", generated(world, "dev@small.test"))
    made = until(
        lambda: (
            (found := ask(world, "10.1.0.1", 6443, "POST", TANZU, mine, CLUSTER)).status in (201, 409)
            and found
        )
    )
    assert made.status == 201, made
    live = until(
        lambda: (
            (found := ask(world, "10.1.0.1", 6443, "GET", f"{TANZU}/c1", mine).data)
            .get("status", {})
            .get("phase")
            == "running"
            and found
        )
    )
    return str(live["status"]["clusterApiStatus"]["apiEndpoints"][0]["host"])


def test_a_developer_s_cluster_opens_an_address_of_its_own(small: Running) -> None:
    namespace(small)
    host = cluster_runs(small)
    inside = bearer(small, "dev@small.test", generated(small, "dev@small.test"), guest=True)
    nodes = ask(small, host, 6443, "GET", "/api/v1/nodes", inside).data["items"]
    assert len(nodes) == 3
    assert len(control(small, "GET", "/sessions").data["kubernetes"]) == 2
    control(small, "POST", "/expire")
    assert ask(small, host, 6443, "GET", "/api/v1/nodes", inside).status == 401


def test_a_restart_keeps_the_cluster_and_removing_the_namespace_ends_it(own: Running) -> None:
    namespace(own)
    host = cluster_runs(own)
    before = control(own, "GET", "/world").data
    stop(own.state)
    again = start(SMALL_WORLD, own.state)
    assert again.lookup(host, 6443)
    assert control(again, "GET", "/world").data == before
    assert Rest(again).call("DELETE", "/api/vcenter/namespaces/instances/ns").status == 204
    until(lambda: Rest(again).call("GET", "/api/vcenter/namespaces/instances/ns").status == 404)
    until(lambda: (found := running(again.state)) and f"{host}:6443" not in found.addresses)


def test_two_worlds_that_went_the_same_way_are_equal(small: Running, tmp_path: Path) -> None:
    other = start(SMALL_WORLD, tmp_path / "other")
    try:
        for world in (small, other):
            namespace(world)
            cluster_runs(world)
        until(lambda: control(small, "GET", "/world").data == control(other, "GET", "/world").data)
    finally:
        stop(tmp_path / "other")


def test_a_reset_closes_the_guest(small: Running) -> None:
    empty = control(small, "GET", "/world").data
    namespace(small)
    host = cluster_runs(small)
    small.reset()
    assert control(small, "GET", "/world").data == empty
    assert small.lookup(host, 6443) is None
