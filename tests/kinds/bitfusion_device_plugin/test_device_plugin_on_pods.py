"""How the webhook of each release, installed by bfinfra, changes pods. It keeps the configuration that it
read at its start until its pods start anew.
"""

from __future__ import annotations

import json
import uuid

import pytest
from at_cluster import Site
from kube_api import somebody_patches
from waiting import until

from bfinfra.model.device_plugin import RELEASES
from bfinfra.model.errors import BfinfraError

pytestmark = pytest.mark.thorough

SECRETS = {"0.1": "single", "0.2": "single", "0.3": "three", "0.4": "three"}


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def site(tmp_path, api):
    return Site(tmp_path, api)


def installed(site, version, **more):
    site.resources = {
        "namespace": {"bwki": {"cluster": "k"}},
        "token_secret": {
            "t": {"cluster": "k", "token": "tok", "form": SECRETS[version], "namespaces": ["kube-system"]}
        },
        "bitfusion_device_plugin": {
            "p": {"cluster": "k", "version": version, "token_secret": "t", "total_gpu_memory": "16GB", **more}
        },
    }
    return site.applied()


def pod(cluster, space, asks, command=("python train.py",), **notes):
    release_notes = {
        "auto-management/bitfusion": "yes",
        **{name.replace("__", "/"): value for name, value in notes.items()},
    }
    container = {
        "name": "c",
        "image": "train:1",
        "command": list(command),
        "resources": {"limits": {f"bitfusion.io/{name}": value for name, value in asks.items()}},
    }
    return cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"p-{uuid.uuid4().hex[:6]}",
                "namespace": space,
                "annotations": release_notes,
            },
            "spec": {"containers": [container], "restartPolicy": "Never"},
        }
    )


def client_of(version):
    packages = RELEASES[version].clients
    return (
        {"bitfusion-client__os": packages[0].os, "bitfusion-client__version": packages[0].version}
        if packages
        else {}
    )


RUN = {
    "0.1": "bitfusion run -n 2 -p 0.500000 python train.py",
    "0.2": (
        "/bitfusion/bitfusion-client-ubuntu1804_2.5.1-13/usr/bin/bitfusion run -n 2 -p 0.500000 python "
        "train.py"
    ),
    "0.3": (
        "/bitfusion/bitfusion-client-ubuntu1804_4.0.1-5_amd64.deb/usr/bin/bitfusion run -n 2 -p 0.500000  "
        "-- python train.py"
    ),
    "0.4": (
        "/bitfusion/bitfusion-client-ubuntu1804_4.5.0-4_amd64.deb/usr/bin/bitfusion run -n 2 -p 0.500000  "
        "-- python train.py"
    ),
}


@pytest.mark.parametrize("version", RELEASES)
def test_a_pod_runs_below_bitfusion_run_with_the_client_s_files_and_a_copy_of_the_token(
    site, cluster, space, version
):
    installed(site, version)
    made = pod(
        cluster,
        space,
        {RELEASES[version].count.partition("/")[2]: 2, "gpu-percent": 50},
        **client_of(version),
    )
    (container,) = made["spec"]["containers"]
    assert container["command"] == ["/bin/bash", "-c", RUN[version]]
    assert (
        container["resources"]["limits"] == container["resources"]["requests"] == {"bitfusion.io/gpu": "100"}
    )
    assert made["metadata"]["annotations"] == {"auto-management/status": "injected"}
    assert made["spec"]["initContainers"][0]["image"].endswith(f"bitfusion-client:{version}")
    copied = {each["metadata"]["name"] for each in cluster.list("v1", "Secret", space)}
    assert {each["secret"]["secretName"] for each in made["spec"]["volumes"] if "secret" in each} <= copied
    until(
        lambda: (
            cluster.get("v1", "Pod", made["metadata"]["name"], space)["status"]["phase"]
            in ("Running", "Succeeded", "Failed")
        )
    )


def test_what_upstream_leaves_alone_and_what_it_refuses(site, cluster, space):
    installed(site, "0.4")
    good = client_of("0.4")
    # a pod that names no client stays as it is, without an error
    assert "initContainers" not in pod(cluster, space, {"gpu-amount": 1})["spec"]
    assert "initContainers" not in pod(cluster, "kube-system", {"gpu-amount": 1}, **good)["spec"]
    for asks, notes, words in (
        (
            {"gpu-amount": 1},
            {**good, "bitfusion-client__os": "solaris"},
            "Could not find Bitfusion client info",
        ),
        ({"gpu-percent": 50}, good, "gpuNum.Value() Error"),
        ({"gpu-amount": 1, "gpu-percent": 101}, good, "Invalid bitfusion.io/gpu-percent quantity: 101"),
        ({"gpu-amount": 1, "gpu-memory": "16G"}, good, "Memory value Error"),
    ):
        with pytest.raises(BfinfraError, match=words.replace("(", "[(]").replace(")", "[)]")):
            pod(cluster, space, asks, **notes)
    by_memory = pod(
        cluster,
        space,
        {"gpu-amount": 2, "gpu-memory": "4G"},
        **good,
        **{"bitfusion-client__filter": "server.has-rdma=true"},
    )
    assert (
        "run -n 2 -m 4000   --filter server.has-rdma=true -- python train.py"
        in by_memory["spec"]["containers"][0]["command"][2]
    )
    assert by_memory["spec"]["containers"][0]["resources"]["requests"] == {"bitfusion.io/gpu": "50"}


def test_it_goes_on_as_it_started_until_an_apply_starts_its_pods_anew(site, cluster, space):
    installed(site, "0.4")
    asks = {"gpu-amount": 1}
    before = pod(cluster, space, asks, **client_of("0.4"))["spec"]["initContainers"][0]["image"]
    text = cluster.get("v1", "ConfigMap", "bwki-webhook-configmap", "bwki")["data"][
        "sidecarconfig.yaml"
    ].replace(before, "theirs:1")
    somebody_patches(
        cluster, "namespaces/bwki/configmaps/bwki-webhook-configmap", {"data": {"sidecarconfig.yaml": text}}
    )
    assert pod(cluster, space, asks, **client_of("0.4"))["spec"]["initContainers"][0]["image"] == before
    installed(site, "0.4", images={"client": "mirror.example.com/client:9"})
    assert (
        pod(cluster, space, asks, **client_of("0.4"))["spec"]["initContainers"][0]["image"]
        == "mirror.example.com/client:9"
    )


def test_a_copy_of_the_token_is_never_refreshed_by_the_webhook(site, cluster, space):
    installed(site, "0.4")
    first = json.dumps(pod(cluster, space, {"gpu-amount": 1}, **client_of("0.4"))["spec"]["volumes"])
    data = cluster.get("v1", "Secret", "bitfusion-client-secret-ca.crt", space)["data"]
    site.token("second")
    site.applied()
    assert json.dumps(pod(cluster, space, {"gpu-amount": 1}, **client_of("0.4"))["spec"]["volumes"]) == first
    assert cluster.get("v1", "Secret", "bitfusion-client-secret-ca.crt", space)["data"] == data
    assert cluster.get("v1", "Secret", "bitfusion-client-secret-ca.crt", "kube-system")["data"] != data


def test_pods_pull_the_client_s_image_with_an_account_of_their_own_namespace_and_a_plan_says_which_lack_it(
    site, cluster, space, monkeypatch
):
    monkeypatch.setenv("CLOSED", "p")
    account = {
        "cluster": "k",
        "server": "closed.test",
        "username": "u",
        "password": {"env": "CLOSED"},
        "namespaces": ["bwki", "kube-system"],
    }
    quotas = [{"namespace": space, "gpus": 4}]
    more = {"registry_credential": "r", "images": {"repository": "closed.test/bf"}, "quotas": quotas}
    site.resources = {
        "namespace": {"bwki": {"cluster": "k"}},
        "registry_credential": {"r": account},
        "token_secret": {"t": {"cluster": "k", "token": "tok", "namespaces": ["kube-system"]}},
        "bitfusion_device_plugin": {"p": {"cluster": "k", "token_secret": "t", **more}},
    }
    (problem,) = site.plan().problems
    assert f"registry_credential/r does not reach {space}" in problem.what
    assert "closed.test/bf/bitfusion-client:0.4" in problem.why
    account["namespaces"].append(space)
    site.applied()
    made = pod(cluster, space, {"gpu-amount": 1}, **client_of("0.4"))["metadata"]["name"]

    def why():
        states = cluster.get("v1", "Pod", made, space)["status"].get("initContainerStatuses") or [
            {"state": {}}
        ]
        return (states[0]["state"].get("waiting") or {}).get("reason")

    until(lambda: why() == "ImagePullBackOff")
    somebody_patches(
        cluster, f"namespaces/{space}/serviceaccounts/default", {"imagePullSecrets": [{"name": "r"}]}
    )
    until(lambda: cluster.get("v1", "Pod", made, space)["status"]["phase"] in ("Running", "Succeeded"))
