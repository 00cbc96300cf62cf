"""The GPU operator's settings, its license, its readiness, and what is refused."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from kinds.at_cluster import Site
from kinds.gpu_operator.at_gpus import ADDRESS, LICENSED, NVIDIA, given, jwt, made, policy
from kinds.unmanaged import Entry, Look, kube_object
from rights.given import other

from bfinfra.sandbox import Running

POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
pytestmark = pytest.mark.parametrize("api", ["sandbox"], indirect=True)


@pytest.fixture
def site(api: Any, tmp_path: Path) -> Site:
    return made(api, tmp_path)


def test_fields_become_settings_and_the_operator_takes_them(site, cluster):
    driver = {"repository": "r.example.com/nv", "image": "vgpu", "version": "580.95.05", "credential": "ngc"}
    given(site, driver=driver, license=LICENSED, metrics=True).applied()
    found = policy(cluster)
    assert found["status"]["state"] == "ready"
    assert found["spec"]["driver"] == {
        "enabled": True,
        "repository": "r.example.com/nv",
        "image": "vgpu",
        "version": "580.95.05",
        "imagePullSecrets": ["ngc"],
        "licensingConfig": {"secretName": "bfinfra-vgpu-license", "nlsEnabled": True},
    }
    assert cluster.get("apps/v1", "DaemonSet", "nvidia-dcgm-exporter", "default")
    assert site.item(ADDRESS).steps == ()


def test_another_token_changes_the_secret_and_shows_none(site, cluster):
    given(site, license=LICENSED).applied()
    text = jwt(time.time() + 7200)
    (site.folder / "token.tok").write_text(text)
    assert text not in str(site.plan())
    assert site.titles(ADDRESS)[0] == "change Secret default/bfinfra-vgpu-license in k"
    site.applied()
    secret = cluster.get("v1", "Secret", "bfinfra-vgpu-license", "default")
    assert base64.b64decode(secret["data"]["client_configuration_token.tok"]).decode() == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the license token is empty"),
        ("a token", "it is not a JWT"),
        (jwt(1_600_000_000), "the license token expired on 2020-09-13"),
    ],
)
def test_a_token_that_licenses_nothing_is_refused_before_the_first_write(site, text, why):
    (site.folder / "token.tok").write_text(text)
    (problem,) = given(site, license=LICENSED).plan().problems
    assert why in str(problem)


def test_claims_need_their_api(site):
    found = given(site, allocate="dra").plan().problems
    assert "which the cluster does not serve" in str(found)


def test_a_namespace_that_refuses_its_pods_is_refused(site, cluster):
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tight", "labels": labels}})
    (problem,) = given(site, namespace="tight").plan().problems
    assert "the namespace tight refuses its pods, which need the host; its Pod Security is baseline" in str(
        problem
    )


def test_the_policy_goes_first(site, cluster):
    site.applied()
    titles = [step.title() for step in site.item(ADDRESS, destroy=True).steps]
    assert titles[0] == (
        "delete ClusterPolicy cluster-policy from k, and wait until the operator's operands are gone"
    )
    site.applied(destroy=True)
    assert cluster.list("apps/v1", "DaemonSet", "default") == []


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    return kube_object(other(sandbox), "/api/v1/namespaces/default/serviceaccounts", body)


def theirs(sandbox: Running) -> object:
    body = {"apiVersion": NVIDIA, "kind": "ClusterPolicy", "metadata": {"name": "theirs"}, "spec": {}}
    return other(sandbox).call("POST", POLICIES, body)


UNMANAGED = Entry(at="gpu-operator", plant=unmanaged, inside=(theirs, "ClusterPolicy theirs"))
