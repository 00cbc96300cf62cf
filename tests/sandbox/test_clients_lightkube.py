"""lightkube's typed models on a cluster of the running sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from client_cluster import kubeconfig
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, Secret
from lightkube.types import PatchType

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough


@pytest.fixture
def kube(sandbox: Running) -> Iterator[Client]:
    config = KubeConfig.from_dict(kubeconfig(sandbox)).get()
    assert config
    client = Client(config=config, field_manager="somebody", trust_env=False)
    yield client
    client.close()


def test_typed_lists_and_selectors(kube: Client) -> None:
    assert len(list(kube.list(Node))) == 2
    secrets = list(kube.list(Secret, namespace="*", labels={"bfinfra.io/site": "example"}))
    assert len(secrets) == 3
    (authority,) = kube.list(
        Secret, namespace="default", fields={"metadata.name": "bitfusion-client-secret-ca.crt"}
    )
    assert authority.data


def test_a_deployment_is_rolled_out_and_waited_for(kube: Client) -> None:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}),
        spec=PodSpec(containers=[Container(name="web", image="nginx")]),
    )
    spec = DeploymentSpec(replicas=2, selector=LabelSelector(matchLabels={"app": "web"}), template=template)
    kube.create(Deployment(metadata=ObjectMeta(name="web", namespace="default"), spec=spec))
    kube.wait(Deployment, "web", for_conditions=["Available"], namespace="default")
    assert len(list(kube.list(Pod, namespace="default", labels={"app": "web"}))) == 2
    kube.patch(
        Deployment.Scale, "web", {"spec": {"replicas": 0}}, namespace="default", patch_type=PatchType.MERGE
    )
    assert kube.get(Deployment, "web", namespace="default").spec.replicas == 0


def test_apply_keeps_what_others_own(kube: Client) -> None:
    def body(**data: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name="x", namespace="default"), data=data)

    kube.apply(body(a="1"), field_manager="one")
    kube.apply(body(b="2"), field_manager="two")
    with pytest.raises(ApiError, match="conflict"):
        kube.apply(body(a="3"), field_manager="two")
    kube.apply(body(), field_manager="one")
    assert kube.get(ConfigMap, "x", namespace="default").data == {"b": "2"}


def test_a_watch_brings_events_in_their_order(kube: Client) -> None:
    for step in ({"a": "1"}, {"a": "2"}):
        kube.apply(
            ConfigMap(metadata=ObjectMeta(name="w", namespace="default"), data=step), field_manager="one"
        )
    kube.delete(ConfigMap, "w", namespace="default")
    seen = []
    for kind, found in kube.watch(
        ConfigMap, namespace="default", fields={"metadata.name": "w"}, resource_version="1", server_timeout=60
    ):
        seen.append((kind, (found.data or {}).get("a")))
        if kind == "DELETED":
            break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_access_reviews(kube: Client) -> None:
    spec = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}}
    answer = kube.create(SelfSubjectAccessReview.from_dict(spec))
    assert answer.status is not None
    assert answer.status.allowed is True
