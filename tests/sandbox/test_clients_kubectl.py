"""kubectl on clusters of the running sandbox, with the kubeconfig that the sandbox hands out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from client_cluster import SITE
from kinds.lifecycle import apply, endings, made, plan
from peers.found import Peers

from bfinfra import sandbox as sandboxes
from bfinfra.sandbox import SMALL_WORLD, Running

pytestmark = pytest.mark.peers
Kubectl = Callable[..., str]
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {
        "backoffLimit": 0,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "a", "image": "busybox", "command": ["echo"]}],
            }
        },
    },
}

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
        },
    },
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The small world with a guest cluster and a token in it."""
    folder = tmp_path_factory.mktemp("kubectl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BFINFRA_STATE_HOME", str(folder / "journal"))
        running = sandboxes.start(SMALL_WORLD, folder / "state", pace=0)
        done = apply(SITE, running)
        assert made(done), endings(done)
        yield running
    sandboxes.stop(folder / "state")


@pytest.fixture
def kubectl(world: Running, peers: Peers) -> Kubectl:
    """On the guest cluster."""
    return lambda *words, given="": peers.kubectl(
        "--context", "team-a/cluster-01", *words, given=given, kubeconfig=world.state / "kubeconfig"
    )


@pytest.fixture
def supervisor(world: Running, peers: Peers) -> Kubectl:
    return lambda *words, given="": peers.kubectl(
        "--context", "compute", *words, given=given, kubeconfig=world.state / "kubeconfig"
    )


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("get", "nodes"), "Ready"),
        (("get", "secrets", "-A"), "bitfusion-client-secret-ca.crt"),
        (("get", "sc"), "gold"),
        (("api-resources",), "configmaps"),
        (("api-versions",), "batch/v1"),
        (("version",), "v1.20.2"),
        (("auth", "can-i", "delete", "nodes"), "yes"),
        (("auth", "whoami"), "Username"),
        (("get", "--raw", "/readyz"), "ok"),
        (("describe", "secret", "bitfusion-client-secret-ca.crt"), "ca.crt:"),
        (("get", "ns", "default", "-o", "jsonpath={.status.phase}"), "Active"),
        (
            ("get", "secrets", "-l", "bfinfra.io/site=example", "-o", "name"),
            "secret/bitfusion-client-secret-client.yml",
        ),
        (("get", "pods", "--field-selector", "status.phase=Running", "-A", "--ignore-not-found"), ""),
        (("cluster-info",), "is running at"),
    ],
)
def test_everything_can_be_looked_at(words: tuple[str, ...], output: str, kubectl: Kubectl) -> None:
    assert output in kubectl(*words)


def test_columns_of_the_supervisors_own_kinds(supervisor: Kubectl) -> None:
    heads, row = supervisor("get", "tkc", "-n", "team-a").splitlines()
    assert "TKR NAME" in heads
    heads, row = supervisor(
        "get", "tanzukubernetesclusters.v1alpha1.run.tanzu.vmware.com", "-n", "team-a"
    ).splitlines()
    assert "PHASE" in heads
    assert row.split()[0] == "cluster-01"
    assert "running" in row
    assert "v1.20.2" in supervisor("get", "tkr")
    assert "best-effort-small" in supervisor("get", "virtualmachineclasses", "-n", "team-a")


def test_server_side_apply_says_who_is_in_the_way(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", given=yaml.safe_dump(MAP))
    with pytest.raises(AssertionError, match=r"conflict with \"one\""):
        kubectl(
            "apply",
            "--server-side",
            "--field-manager=two",
            "-f",
            "-",
            given=yaml.safe_dump({**MAP, "data": {"a": "2"}}),
        )
    kubectl(
        "apply",
        "--server-side",
        "--field-manager=two",
        "--force-conflicts",
        "-f",
        "-",
        given=yaml.safe_dump({**MAP, "data": {"a": "2"}}),
    )
    owners = {
        each["manager"]
        for each in json.loads(kubectl("get", "cm", "x", "-o", "json", "--show-managed-fields"))["metadata"][
            "managedFields"
        ]
    }
    assert owners == {"one", "two"} or owners == {"two"}
    kubectl("delete", "cm", "x")


def test_the_older_apply_keeps_its_annotation_and_removes_what_was_dropped(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=yaml.safe_dump({**MAP, "data": {"a": "1", "b": "2"}}))
    kubectl("apply", "-f", "-", given=yaml.safe_dump({**MAP, "data": {"a": "3"}}))
    assert json.loads(kubectl("get", "cm", "x", "-o", "json"))["data"] == {"a": "3"}
    kubectl("delete", "cm", "x")


def test_diff_sees_a_change_without_making_it(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", given=yaml.safe_dump(MAP))
    with pytest.raises(AssertionError, match=r"exit 1[\s\S]*\+  a: \"2\""):
        kubectl("diff", "--server-side", "-f", "-", given=yaml.safe_dump({**MAP, "data": {"a": "2"}}))
    assert json.loads(kubectl("get", "cm", "x", "-o", "json"))["data"] == {"a": "1"}
    kubectl("delete", "cm", "x")


def test_a_job_is_waited_for_and_its_log_followed(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=yaml.safe_dump(JOB))
    kubectl("wait", "--for=condition=complete", "job/j", "--timeout=20s")
    kubectl("logs", "-f", "job/j")
    assert "Completed" in kubectl("get", "pods", "-l", "job-name=j")
    kubectl("delete", "job", "j", "--wait")
    assert kubectl("get", "pods", "-l", "job-name=j", "-o", "name") == ""


def test_a_deployment_rolls_out_scales_and_goes(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=yaml.safe_dump(DEPLOYMENT))
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("scale", "deployment/web", "--replicas=1")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert "nginx:2" in kubectl("get", "pods", "-l", "app=web", "-o", "yaml")
    assert {"deployment.apps/web", "replicaset.apps", "pod"} <= {
        word.partition("/web-")[0] for word in kubectl("get", "all", "-o", "name").split()
    }
    kubectl("label", "deployment/web", "a=b")
    kubectl("annotate", "deployment/web", "c=d")
    kubectl("delete", "deployment", "web", "--wait")


def test_missing_and_wrong_objects_are_reported_in_a_servers_words(kubectl: Kubectl) -> None:
    for words, given, why in (
        (("get", "cm", "none"), "", r'configmaps "none" not found'),
        (("create", "-f", "-"), yaml.safe_dump({**MAP, "metadata": {"name": "Not_A_Name"}}), "Invalid value"),
        (("get", "fruits"), "", "doesn't have a resource type"),
        (("apply", "-f", "-"), yaml.safe_dump({**MAP, "colour": "red"}), r"unknown field|strict decoding"),
    ):
        with pytest.raises(AssertionError, match=why):
            kubectl(*words, given=given)


def test_what_kubectl_changes_is_drift_and_is_put_right(kubectl: Kubectl, world: Running) -> None:
    def pending() -> list[str]:
        return [str(item.key) for item in plan(SITE, world).pending]

    assert pending() == []
    kubectl("delete", "secret", "bitfusion-client-secret-servers.conf")
    assert pending() == ["token_secret/cluster-01-default"]
    assert made(apply(SITE, world))
    assert pending() == []


def test_a_watch_ends_when_its_object_goes(
    kubectl: Kubectl, world: Running, peers: Peers, tmp_path: Path
) -> None:
    kubectl("apply", "-f", "-", given=yaml.safe_dump(MAP))
    command = [
        str(peers.bin / "kubectl"),
        "--kubeconfig",
        str(world.state / "kubeconfig"),
        "--context",
        "team-a/cluster-01",
        "wait",
        "--for=delete",
        "cm/x",
        "--timeout=20s",
    ]
    waits: Any = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"HOME": str(tmp_path)})
    kubectl("delete", "cm", "x")
    assert waits.communicate(timeout=20)[0].startswith("configmap/x") or waits.returncode == 0
