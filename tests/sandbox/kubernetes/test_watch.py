"""Watches, through plain HTTP, lightkube and the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import kubernetes
import pytest
from kube_serving import Served
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from bfinfra.sandbox.kubernetes import store

HOME = "/api/v1/namespaces/default/configmaps"


@contextmanager
def events(http: httpx2.Client, query: str) -> Iterator[Iterator[dict[str, Any]]]:
    with http.stream("GET", f"{HOME}?watch=1&timeoutSeconds=5&{query}") as answer:
        assert answer.status_code == 200
        yield (json.loads(line) for line in answer.iter_lines())


def make(http: httpx2.Client, name: str, **labels: str) -> int:
    return int(
        http.post(HOME, json={"metadata": {"name": name, "labels": labels}}).json()["metadata"][
            "resourceVersion"
        ]
    )


def relabel(http: httpx2.Client, name: str, **labels: str | None) -> None:
    http.patch(
        f"{HOME}/{name}",
        content=json.dumps({"metadata": {"labels": labels}}),
        headers={"content-type": "application/merge-patch+json"},
    )


def test_a_watch_reports_what_happened_since_a_version(http: httpx2.Client) -> None:
    since = make(http, "a")
    make(http, "b")
    relabel(http, "b", x="y")
    http.delete(f"{HOME}/a")
    with events(http, f"resourceVersion={since}") as stream:
        item = [
            (each["type"], each["object"]["metadata"]["name"])
            for _, each in zip(range(3), stream, strict=False)
        ]
    assert item == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]


def test_objects_come_and_go_as_their_labels_do(http: httpx2.Client) -> None:
    since = make(http, "a")
    relabel(http, "a", x="y")
    relabel(http, "a", x="y", z="1")
    relabel(http, "a", x="n")
    with events(http, f"resourceVersion={since}&labelSelector=x%3Dy") as stream:
        assert [each["type"] for _, each in zip(range(3), stream, strict=False)] == [
            "ADDED",
            "MODIFIED",
            "DELETED",
        ]


def test_a_version_from_too_long_ago_is_gone(http: httpx2.Client, served: Served) -> None:
    for number in range(store.HISTORY + 1):
        served.cluster.store.put(
            ("", "configmaps"),
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"c{number % 3}", "namespace": "default"},
            },
        )
    with events(http, "resourceVersion=2") as stream:
        item = next(stream)
    assert (item["type"], item["object"]["code"], item["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_streamed_list_ends_with_a_bookmark(http: httpx2.Client) -> None:
    make(http, "a")
    with events(
        http, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    ) as stream:
        first, mark = next(stream), next(stream)
    assert first["type"] == "ADDED"
    assert (mark["type"], mark["object"]["metadata"]["annotations"]) == (
        "BOOKMARK",
        {"k8s.io/initial-events-end": "true"},
    )


def test_lightkube_watches(served: Served) -> None:
    client = served.lightkube()
    client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "v"}))
    watched = client.watch(ConfigMap, namespace="default", resource_version="0")
    kind, seen = next(iter(watched))
    watched.close()
    assert (kind, seen.metadata.name if seen.metadata else "") == ("ADDED", "a")


def test_the_official_client_creates_lists_patches_watches_and_deletes(served: Served) -> None:
    configuration = kubernetes.client.Configuration(host=served.url)
    configuration.ssl_ca_cert = str(served.ca_file)
    configuration.api_key = {"authorization": f"Bearer {served.cluster.admin_token}"}
    with kubernetes.client.ApiClient(configuration) as client:
        core = kubernetes.client.CoreV1Api(client)
        core.create_namespaced_config_map(
            "default",
            kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(name="a"), data={"k": "v"}),
        )
        assert [each.metadata.name for each in core.list_namespaced_config_map("default").items] == ["a"]
        assert core.patch_namespaced_config_map("a", "default", {"data": {"z": "1"}}).data == {
            "k": "v",
            "z": "1",
        }
        watcher = kubernetes.watch.Watch()
        for event in watcher.stream(core.list_namespaced_config_map, "default", timeout_seconds=60):
            assert (event["type"], event["object"].metadata.name) == ("ADDED", "a")
            watcher.stop()
        core.delete_namespaced_config_map("a", "default")
        with pytest.raises(kubernetes.client.ApiException) as item:
            core.read_namespaced_config_map("a", "default")
        assert item.value.status == 404
