"""More than one pod of the webhook, more than the usual shares of a GPU, more than one namespace."""

from __future__ import annotations

import json
from typing import Any

from kinds.of_several import of_several

from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import QUOTA, Values, render
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec

SPACES = {"a": "team-a", "b": "team-b"}


def objects(**fields: Any) -> list[dict[str, Any]]:
    spec = Spec.model_validate({"cluster": "k", "version": "0.4", **fields})
    return [dict(each.manifest) for each in render(spec, Values("bwki", "kube-system", SPACES))]


def of_kind(kind: str, **fields: Any) -> list[dict[str, Any]]:
    return [each for each in objects(**fields) if each["kind"] == kind]


@of_several("bitfusion_device_plugin.replicas")
def test_the_webhook_has_as_many_pods_as_replicas() -> None:
    for count in (1, 2, 3):
        (deployment,) = of_kind("Deployment", replicas=count)
        assert deployment["spec"]["replicas"] == count


@of_several("bitfusion_device_plugin.shares")
def test_each_node_advertises_as_many_shares_as_the_site_says() -> None:
    for count in (200, 1600):
        (daemons,) = of_kind("DaemonSet", shares=count)
        (container,) = daemons["spec"]["template"]["spec"]["containers"]
        told = {each["name"]: each.get("value") for each in container["env"]}
        assert told["RESOURCE_NUMS"] == str(count)


@of_several("bitfusion_device_plugin.namespaces")
def test_the_webhook_gets_the_pods_of_each_namespace() -> None:
    for hook in of_kind("MutatingWebhookConfiguration", namespaces=["a", "b"]):
        assert "team-a" in json.dumps(hook)
        assert "team-b" in json.dumps(hook)


@of_several("bitfusion_device_plugin.quotas")
def test_each_namespace_has_its_own_quota() -> None:
    quotas = of_kind("ResourceQuota", quotas=[{"namespace": "a", "gpus": 1.5}, {"namespace": "b", "gpus": 4}])
    found = {
        each["metadata"]["namespace"]: list(each["spec"]["hard"].values())
        for each in quotas
        if each["metadata"]["name"] == QUOTA
    }
    assert found == {"team-a": ["150"], "team-b": ["400"]}
