"""The official Kubernetes client on clusters of the running sandbox, by the kubeconfig that bfinfra
writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client_cluster import SITE, SPACE, kubeconfig, written
from kinds.lifecycle import plan
from kubernetes import client, config, dynamic, watch

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough


def api_of(sandbox: Running, folder: Path, *address: str) -> Any:
    return config.new_client_from_config(str(written(kubeconfig(sandbox, *address), folder)))


@pytest.fixture
def api(sandbox: Running, tmp_path: Path) -> Iterator[Any]:
    api = api_of(sandbox, tmp_path)
    yield api
    api.close()


@pytest.fixture
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


def test_the_typed_models_take_every_answer(api: Any, core: Any) -> None:
    """The client's models are pydantic: an answer with a field of the wrong type raises."""
    assert {each.status.conditions[-1].type for each in core.list_node().items} == {"Ready"}
    assert {"default", "kube-system"} <= {each.metadata.name for each in core.list_namespace().items}
    names = {each.metadata.name for each in core.list_namespaced_secret("default").items}
    assert {f"bitfusion-client-secret-{part}" for part in ("ca.crt", "client.yml", "servers.conf")} <= names
    assert client.VersionApi(api).get_code().git_version.startswith("v1.20.2")
    assert client.StorageV1Api(api).list_storage_class().items[0].metadata.name == "gold"
    assert client.ApiextensionsV1Api(api).list_custom_resource_definition().items is not None
    assert client.RbacAuthorizationV1Api(api).list_cluster_role().items


def test_objects_are_made_changed_and_removed(core: Any) -> None:
    made = core.create_namespaced_config_map("default", {"metadata": {"name": "one"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("one", "default", {"data": {"b": "2"}})
    made.data = {"a": "3"}
    with pytest.raises(client.ApiException, match="Conflict"):
        core.replace_namespaced_config_map("one", "default", made)
    assert core.read_namespaced_config_map("one", "default").data == {"a": "1", "b": "2"}
    core.delete_namespaced_config_map("one", "default")
    with pytest.raises(client.ApiException) as gone:
        core.read_namespaced_config_map("one", "default")
    assert (gone.value.status, json.loads(gone.value.body)["reason"]) == (404, "NotFound")


def test_a_watch_sees_a_job_run_to_its_end_and_the_log_can_be_followed(api: Any, core: Any) -> None:
    container = {"name": "a", "image": "busybox", "command": ["echo", "x"]}
    job = {
        "metadata": {"name": "j"},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    batch = client.BatchV1Api(api)
    batch.create_namespaced_job("default", job)
    stream = watch.Watch()
    for event in stream.stream(batch.list_namespaced_job, "default", timeout_seconds=60):
        if event["object"].status.succeeded:
            stream.stop()
    (pod,) = core.list_namespaced_pod("default", label_selector="job-name=j").items
    assert pod.status.phase == "Succeeded"
    assert isinstance(core.read_namespaced_pod_log(pod.metadata.name, "default"), str)


def test_netcat_in_a_pod_reaches_what_the_world_serves_and_no_policy_forbids(api: Any, core: Any) -> None:
    """From a pod to the supervisor's two ports; its last words are read from the pod's status."""
    network, batch = client.NetworkingV1Api(api), client.BatchV1Api(api)
    server = "10.1.0.1"
    container = {
        "name": "a",
        "image": "busybox",
        "command": ["sh", "-c", "nc -z …", f"{server}:6443", f"{server}:443"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 6443}]}]}
    for name in ("free", "kept"):
        batch.create_namespaced_job(
            "default",
            {
                "metadata": {"name": name},
                "spec": {
                    "backoffLimit": 0,
                    "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
                },
            },
        )
        stream = watch.Watch()
        for event in stream.stream(
            batch.list_namespaced_job, "default", field_selector=f"metadata.name={name}", timeout_seconds=60
        ):
            if event["object"].status.conditions:
                stream.stop()
        if name == "free":
            network.create_namespaced_network_policy("default", {"metadata": {"name": "out"}, "spec": spec})
    network.delete_namespaced_network_policy("out", "default")
    ends = {
        pod.metadata.labels["job-name"]: pod.status.container_statuses[0].state.terminated
        for pod in core.list_namespaced_pod("default", label_selector="job-name in (free, kept)").items
    }
    assert {name: (each.exit_code, each.message) for name, each in ends.items()} == {
        "free": (0, None),
        "kept": (1, f"{server}:6443 reached\n{server}:443 not reached\n"),
    }


def test_a_watch_starts_where_the_list_ended(core: Any) -> None:
    version = core.list_namespaced_config_map("default").metadata.resource_version
    core.create_namespaced_config_map("default", {"metadata": {"name": "later"}})
    stream = watch.Watch()
    event = next(
        iter(
            stream.stream(
                core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=60
            )
        )
    )
    stream.stop()
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "later")


def test_lists_come_in_pages(core: Any) -> None:
    for n in range(5):
        core.create_namespaced_config_map("kube-public", {"metadata": {"name": f"c{n}"}})
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map("kube-public", limit=2, _continue=token)
        assert len(page.items) <= 2
        names += [each.metadata.name for each in page.items]
        token = page.metadata._continue or ""
    assert [name for name in names if name.startswith("c")] == [f"c{n}" for n in range(5)]
    assert len(names) == len(set(names))


def test_the_dynamic_client_discovers_and_applies(api: Any, tmp_path: Path) -> None:
    found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery"))
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}}
    maps.server_side_apply(body=body, namespace="default", field_manager="one")
    with pytest.raises(dynamic.exceptions.ConflictError) as conflict:
        maps.server_side_apply(body={**body, "data": {"a": "2"}}, namespace="default", field_manager="two")
    assert json.loads(conflict.value.body)["details"]["causes"][0]["field"] == ".data.a"
    maps.server_side_apply(
        body={**body, "data": {"a": "2"}}, namespace="default", field_manager="two", force_conflicts=True
    )
    assert maps.get(name="x", namespace="default").data.a == "2"
    assert {each.kind for each in found.resources.search(group="batch")} >= {"Job"}


def test_custom_objects_of_the_supervisor(sandbox: Running, tmp_path: Path) -> None:
    api = api_of(sandbox, tmp_path, SPACE)
    tanzu = ("run.tanzu.vmware.com", "v1alpha1", "team-a", "tanzukubernetesclusters")
    objects = client.CustomObjectsApi(api)
    (found,) = objects.list_namespaced_custom_object(*tanzu)["items"]
    assert (found["status"]["phase"], found["metadata"]["labels"]["bfinfra.io/site"]) == (
        "running",
        "example",
    )
    change = {"spec": {"topology": {"workers": {"count": 2}}}}
    objects.patch_namespaced_custom_object(
        *tanzu, "cluster-01", change, _content_type="application/merge-patch+json"
    )
    (item,) = plan(SITE, sandbox).pending
    assert [(each.field, each.now, each.wanted) for each in item.changes] == [("workers.workers.count", 2, 1)]
    api.close()


def test_what_the_client_changes_is_drift(core: Any, sandbox: Running) -> None:
    core.patch_namespaced_secret(
        "bitfusion-client-secret-client.yml", "default", {"stringData": {"client.yaml": "x"}}
    )
    assert [str(item.key) for item in plan(SITE, sandbox).pending] == ["token_secret/cluster-01-default"]


def test_a_token_that_ended_is_refused(core: Any, sandbox: Running) -> None:
    sandbox.expire()
    with pytest.raises(client.ApiException) as refused:
        core.list_namespace()
    assert refused.value.status == 401
