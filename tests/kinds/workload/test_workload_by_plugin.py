"""Workloads whose GPUs the Bitfusion device plug-in gives: what is written for each release, what validate
refuses, and how its webhook takes it.
"""

from __future__ import annotations

import pytest
import yaml
from at_cluster import Site

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.kinds.cluster.workload.plugin import Installed, attach
from bfinfra.kinds.cluster.workload.spec import Spec
from bfinfra.model.device_plugin import RELEASES
from bfinfra.model.errors import Refusal, SiteError

UBUNTU = {"os": "ubuntu20", "version": "450"}


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def site(tmp_path, api):
    return Site(tmp_path, api)


def job(name="train", **container):
    pod = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "c",
                "image": "train:1",
                "command": ["python"],
                "args": ["train.py", "--name", "a b"],
                **container,
            }
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod}},
    }


def bare(name="alone"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": job()["spec"]["template"]["spec"],
    }


def written(site, space, workload, plugin=(), documents=None):
    (site.folder / "w.yaml").write_text(yaml.safe_dump_all(documents or [job(), bare()]))
    site.resources = {
        "namespace": {"bwki": {"cluster": "k"}},
        "token_secret": {"t": {"cluster": "k", "token": "tok", "namespaces": ["kube-system"]}},
        "bitfusion_device_plugin": {
            "p": {"cluster": "k", "token_secret": "t", "total_gpu_memory": "16GB", **dict(plugin)}
        },
        "workload": {
            "w": {
                "cluster": "k",
                "namespace": space,
                "manifest": "w.yaml",
                "gpus": 2,
                "by": "plugin",
                "device_plugin": "p",
                **workload,
            }
        },
    }


def test_it_runs_below_bitfusion_run_and_is_known_again_though_the_webhook_takes_a_pod_s_annotations(
    site, cluster, space
):
    written(
        site,
        space,
        {"fraction": 0.5, "client": UBUNTU, "filters": ["server.has-rdma=true"], "wait": "finished"},
    )
    site.applied()
    for pod in cluster.list("v1", "Pod", space):
        assert pod["spec"]["initContainers"][0]["image"].endswith("bitfusion-client:0.4")
        assert pod["spec"]["containers"][0]["command"][2].endswith(
            "/usr/bin/bitfusion run -n 2 -p 0.500000  --filter server.has-rdma=true -- python train.py "
            "--name 'a b'"
        )
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"bitfusion.io/gpu": "100"}
    alone = cluster.get("v1", "Pod", "alone", space)
    assert mark_of(alone).address == "workload/w"
    assert alone["metadata"]["annotations"]["auto-management/status"] == "injected"
    assert site.plan().pending == ()
    site.resources["workload"] = {}
    site.applied()
    assert cluster.list("batch/v1", "Job", space) == []
    assert not [each for each in cluster.list("v1", "Pod", space) if each["metadata"]["name"] == "alone"]


@pytest.mark.parametrize(
    ("version", "asks"),
    [
        ("0.1", {"bitfusion.io/gpu-num": "2", "bitfusion.io/gpu-percent": "25"}),
        ("0.2", {"bitfusion.io/gpu-amount": "2", "bitfusion.io/gpu-percent": "25"}),
        ("0.4", {"bitfusion.io/gpu-amount": "2", "bitfusion.io/gpu-percent": "25"}),
    ],
)
def test_each_release_has_names_of_its_own(version, asks):
    release = RELEASES[version]
    client = (
        {"client": {"os": release.clients[0].os, "version": release.clients[0].version}}
        if release.clients
        else {}
    )
    spec = Spec.model_construct(gpus=2, fraction=0.25, gpu_memory=None, by="plugin", filters=(), client=None)
    if client:
        spec = spec.model_copy(update={"client": type("C", (), client["client"])()})
    manifest = job(resources={"limits": {"cpu": "2", "bitfusion.io/gpu-amount": "7"}})
    attach(manifest, spec, Installed(release, release.clients), "Job/train")
    template = manifest["spec"]["template"]
    assert template["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", **asks},
        "requests": asks,
    }
    assert template["spec"]["containers"][0]["command"] == ["python train.py --name 'a b'"]
    assert "args" not in template["spec"]["containers"][0]
    notes = template["metadata"]["annotations"]
    assert notes["auto-management/bitfusion"] == "yes"
    assert ("bitfusion-client/os" in notes) == bool(release.clients)


@pytest.mark.parametrize(
    ("workload", "plugin", "words"),
    [
        ({}, {}, "ignores pods that don't say for which system"),
        ({"client": {"os": "ubuntu20", "version": "250"}}, {}, "has no client 250 for ubuntu20"),
        (
            {"client": UBUNTU},
            {"version": "0.1"},
            "release 0.1 of the device plug-in doesn't let pods choose a client",
        ),
        (
            {"filters": ["server.has-rdma=true"]},
            {"version": "0.1"},
            "release 0.1 of the device plug-in knows no filters",
        ),
        (
            {"client": UBUNTU, "gpu_memory": "16GB"},
            {},
            "the webhook would refuse 16000 MB: total_gpu_memory there is 16000 MB",
        ),
        (
            {"client": UBUNTU, "gpu_memory": "4GB"},
            {"total_gpu_memory": 0},
            "total_gpu_memory isn't given there",
        ),
        ({"client": UBUNTU, "fraction": 0.125}, {}, "no hundredths of a GPU"),
        ({"client": UBUNTU, "gpus": 11}, {}, "it takes 1100 hundredths of a GPU, and each node offers 1000"),
        ({"client": UBUNTU}, {"namespaces": ["other"]}, "don't reach the device plug-in's webhook"),
        ({"client": UBUNTU, "namespace": "kube-system"}, {}, "pods in kube-system are skipped"),
    ],
)
def test_validate_reports_what_the_release_would_refuse_or_leave_alone(site, workload, plugin, words):
    written(site, "team", workload, plugin)
    with pytest.raises(SiteError) as refused:
        site._load()
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"device_plugin": None},
        {"device_plugin": "p", "plugin_version": "0.4"},
        {"by": "env"},
        {"token_secret": "t"},
        {"filters": ["fast"]},
        {"plugin_version": "0.5", "device_plugin": None},
    ],
)
def test_what_contradicts_itself_is_no_spec(site, fields):
    written(site, "team", {"client": UBUNTU, **fields})
    with pytest.raises(SiteError):
        site._load()


@pytest.mark.parametrize(
    ("document", "words"),
    [(job(command=None), "has no command"), (job(command=["bitfusion", "run"]), "starts bitfusion already")],
)
def test_a_command_that_the_webhook_would_spoil_is_refused_by_the_plan(document, words):
    spec = Spec.model_construct(gpus=1, fraction=None, gpu_memory=None, by="plugin", filters=(), client=None)
    with pytest.raises(Refusal, match=words):
        attach(document, spec, Installed(RELEASES["0.1"], ()), "Job/train")


def test_a_second_container_with_a_command_is_refused_where_the_webhook_would_refuse_the_pod():
    document = job()
    document["spec"]["template"]["spec"]["containers"].append(
        {"name": "side", "image": "x", "command": ["sleep"]}
    )
    spec = Spec.model_construct(gpus=1, fraction=None, gpu_memory=None, by="plugin", filters=(), client=None)
    with pytest.raises(Refusal, match="the container side has a command and requests no GPU"):
        attach(document, spec, Installed(RELEASES["0.4"], ()), "Job/train")


@pytest.mark.parametrize(("version", "memory"), [("0.1", "8000"), ("0.2", "8000M")])
def test_memory_is_asked_for_as_the_release_counts_it(version, memory):
    spec, manifest = (
        Spec.model_construct(
            gpus=1, fraction=None, gpu_memory=8 * 10**9, by="plugin", filters=(), client=None
        ),
        job(),
    )
    attach(manifest, spec, Installed(RELEASES[version], ()), "Job/train")
    assert (
        manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"][
            "bitfusion.io/gpu-memory"
        ]
        == memory
    )
