"""A cluster that no supervisor made: the official client gets in with the kubeconfig that the world made, and
stays in over resets and restarts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asking import control
from kubernetes import client, config
from waiting import until

from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

HOME = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cakes.bakery.test"},
    "spec": {
        "group": "bakery.test",
        "scope": "Cluster",
        "names": {"plural": "cakes", "singular": "cake", "kind": "Cake"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def written(world: Running) -> str:
    return (Path(world.files) / "other.kubeconfig").read_text()


@contextmanager
def administrator(world: Running, token: str = "") -> Iterator[Any]:
    """The official client, as the kubeconfig says, led to where the address really listens."""
    made, wanted = json.loads(written(world)), client.Configuration()
    cluster, there = made["clusters"][0]["cluster"], world.lookup("10.3.0.1", 6443)
    assert there and cluster["server"] == "https://10.3.0.1:6443"
    cluster |= {"server": f"https://127.0.0.1:{there[1]}", "tls-server-name": "10.3.0.1"}
    if token:
        made["users"][0]["user"]["token"] = token
    config.load_kube_config_from_dict(made, client_configuration=wanted)
    wanted.retries = False
    with client.ApiClient(wanted) as found:
        yield found


def names(world: Running) -> list[str]:
    with administrator(world) as api:
        return [each.metadata.name for each in client.CoreV1Api(api).list_namespace().items]


def test_the_kubeconfig_leads_to_the_cluster_as_the_world_describes_it(sandbox: Running) -> None:
    with administrator(sandbox) as api:
        assert client.VersionApi(api).get_code().git_version == "v1.34.1"
        nodes = client.CoreV1Api(api).list_node().items
        assert [each.metadata.name for each in nodes] == ["other-0", "other-1"]
        assert {each.status.node_info.kubelet_version for each in nodes} == {"v1.34.1"}


def test_only_its_owner_reads_the_kubeconfig_and_no_other_token_gets_in(sandbox: Running) -> None:
    assert (Path(sandbox.files) / "other.kubeconfig").stat().st_mode & 0o077 == 0
    with administrator(sandbox, token="guessed") as api, pytest.raises(client.ApiException) as refused:
        client.CoreV1Api(api).list_namespace()
    assert refused.value.status == 401


def served(cakes: client.CustomObjectsApi) -> bool:
    """A definition is served soon after it is made, not at once."""
    try:
        cakes.list_cluster_custom_object("bakery.test", "v1", "cakes")
    except client.ApiException as error:
        assert error.status == 404
        return False
    return True


def test_a_reset_empties_it_and_the_kubeconfig_stays_good(sandbox: Running) -> None:
    before, at_start = written(sandbox), control(sandbox, "GET", "/world").data
    with administrator(sandbox) as api:
        client.CoreV1Api(api).create_namespace(HOME)
        client.ApiextensionsV1Api(api).create_custom_resource_definition(DEFINITION)
        cakes = client.CustomObjectsApi(api)
        until(lambda: served(cakes))
        assert cakes.list_cluster_custom_object("bakery.test", "v1", "cakes")["items"] == []
        assert control(sandbox, "GET", "/world").data != at_start
        sandbox.reset()
        assert control(sandbox, "GET", "/world").data == at_start
        assert written(sandbox) == before
        assert "mine" not in names(sandbox)
        with pytest.raises(client.ApiException) as gone:
            cakes.list_cluster_custom_object("bakery.test", "v1", "cakes")
        assert gone.value.status == 404


def test_a_restart_keeps_what_is_in_it_and_who_gets_in(own: Running) -> None:
    with administrator(own) as api:
        client.CoreV1Api(api).create_namespace(HOME)
    before, dump = written(own), control(own, "GET", "/world").data
    stop(own.state)
    again = start(SMALL_WORLD, own.state)
    assert written(again) == before
    assert "mine" in names(again)
    assert control(again, "GET", "/world").data == dump


def test_somebody_else_changes_it_and_tokens_given_out_expire(sandbox: Running) -> None:
    made = control(
        sandbox,
        "POST",
        "/change",
        {"address": "10.3.0.1:6443", "method": "POST", "path": "/api/v1/namespaces", "body": HOME},
    )
    assert made.data["status"] == 201
    with administrator(sandbox) as api:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": 600},
        }
        until(lambda: client.CoreV1Api(api).list_namespaced_service_account("mine").items)
        client.CoreV1Api(api).create_namespaced_service_account_token("default", "mine", body)
    assert control(sandbox, "GET", "/sessions").data["kubernetes"] == ["system:serviceaccount:mine:default"]
    control(sandbox, "POST", "/expire")
    assert control(sandbox, "GET", "/sessions").data["kubernetes"] == []
    assert "mine" in names(sandbox)
