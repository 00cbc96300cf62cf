"""The device plug-in on Kubernetes 1.16 to 1.18, whose pods have no seccompProfile."""

from __future__ import annotations

import pytest
from at_cluster import Site

pytestmark = pytest.mark.thorough

WEBHOOK = ("apps/v1", "Deployment", "bitfusion-webhook-deployment", "bwki")
ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/bwki"


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def site(tmp_path, api):
    made = Site(tmp_path, api)
    made.resources = {
        "namespace": {"bwki": {"cluster": "k"}},
        "token_secret": {"t": {"cluster": "k", "token": "tok", "namespaces": ["kube-system"]}},
        "bitfusion_device_plugin": {"p": {"cluster": "k", "token_secret": "t", "total_gpu_memory": "16GB"}},
    }
    return made


def template(cluster):
    return cluster.get(*WEBHOOK)["spec"]["template"]


@pytest.mark.parametrize("server_version", ["v1.16.15", "v1.18.20"])
def test_its_webhook_is_confined_by_the_annotation_of_before_and_does_not_drift(
    server_version, site, cluster
):
    site.applied()
    (container,) = template(cluster)["spec"]["containers"]
    assert "seccompProfile" not in container["securityContext"]
    assert template(cluster)["metadata"]["annotations"][ANNOTATION] == "runtime/default"
    assert site.plan().pending == ()
    assert site.apply().writes == 0
    assert site.drift().found == ()


@pytest.mark.parametrize("server_version", ["v1.19.16"])
def test_where_pods_have_the_field_it_is_the_field_alone(server_version, site, cluster):
    site.applied()
    (container,) = template(cluster)["spec"]["containers"]
    assert container["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert ANNOTATION not in template(cluster)["metadata"]["annotations"]
    assert site.apply().writes == 0
