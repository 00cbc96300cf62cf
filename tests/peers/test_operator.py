"""The operator on a real kube-apiserver with its controllers, installed by kustomize and with no right but
those that its manifests give; kubectl is the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs.commands import blocks
from peers.found import Peers
from peers.jobs import Kubelet
from prometheus_client.parser import text_string_to_metric_families

import bfinfra
from bfinfra.cli.main import main
from bfinfra.operator.crd import definition
from bfinfra.operator.written import written
from bfinfra.spec.schema import schema

ROOT = Path(__file__).parents[2]
ONCE = "operators"
SURVEYED = 30  # seconds for a survey and the first report on a busy machine, after the Lease's duration
LANGUAGE = ["spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "site"]


@dataclass
class Desk:
    """A namespace with the operator's manifests, a Site's author, and replicas of the operator."""

    peers: Peers
    space: str
    folder: Path
    kubelet: Kubelet
    replicas: list[subprocess.Popen[str]] = field(default_factory=list)

    def kubectl(self, *words: str, given: str = "") -> str:
        return self.peers.kubectl(*words, "-n", self.space, given=given)

    def refused(self, *words: str, given: str = "") -> str:
        """What the server says; it must refuse."""
        done = subprocess.run(
            [self.peers.bin / "kubectl", "--kubeconfig", self.peers.kubeconfig, *words, "-n", self.space],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0, done.stdout
        return done.stderr

    def site(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "site", "poc", "-o", "json"))
        return found

    def condition(self, kind: str) -> tuple[str, str]:
        found = next(
            (each for each in self.site().get("status", {}).get("conditions", ()) if each["type"] == kind), {}
        )
        return found.get("status", ""), found.get("reason", "")

    def until(self, holds: Callable[[], Any], seconds: float = 120) -> None:
        """The cluster works, and the kubelet with it."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, (
                self.kubectl("get", "sites,jobs,pods,events"),
                self.kubectl("get", "sites", "-o", "yaml"),
                self.logs(),
            )
            self.kubelet.step()
            time.sleep(0.2)

    def logs(self) -> str:
        return "\n".join(file.read_text()[-2000:] for file in self.folder.glob("operator-*.log"))

    def start(self) -> int:
        """One more replica, as its own account; the port of its figures."""
        config = yaml.safe_load(self.peers.kubeconfig.read_text())
        config["users"][0]["user"] = {
            "token": self.kubectl("create", "token", f"bfinfra-operator{suffix(self.space)}").strip()
        }
        (self.folder / "operator.kubeconfig").write_text(yaml.safe_dump(config))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        pod = self.kubectl(
            "get",
            "pods",
            "-l",
            "app.kubernetes.io/component=operator",
            "-o",
            "jsonpath={.items[0].metadata.name}",
        )
        command = [
            sys.executable,
            "-m",
            "bfinfra",
            "operator",
            "run",
            "--kubeconfig",
            str(self.folder / "operator.kubeconfig"),
            "--lease",
            f"{self.space}/bfinfra-operator",
            "--metrics",
            f"127.0.0.1:{port}",
        ]
        with (self.folder / f"operator-{len(self.replicas)}.log").open("w") as log:
            self.replicas.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    text=True,
                    env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "HOSTNAME": pod},
                )
            )
        self.until(lambda: listens(port))
        return port

    def watcher(self, name: str) -> int:
        """A watcher of this name, as its own account; the port of its figures."""
        config = yaml.safe_load(self.peers.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self.kubectl("create", "token", "bfinfra-watcher").strip()}
        (self.folder / "watcher.kubeconfig").write_text(yaml.safe_dump(config))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        words = {
            "--kubeconfig": self.folder / "watcher.kubeconfig",
            "--namespace": self.space,
            "--name": name,
            "--metrics": f"127.0.0.1:{port}",
        }
        command = [sys.executable, "-m", "bfinfra", "operator", "watcher"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder / name)}
        with (self.folder / f"operator-{name}.log").open("w") as log:
            self.replicas.append(
                subprocess.Popen(
                    [*command, *(str(word) for pair in words.items() for word in pair)],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    text=True,
                    env=env,
                )
            )
        self.until(lambda: listens(port))
        return port

    def watch(self) -> dict[str, Any]:
        found: dict[str, Any] = self.site().get("status", {}).get("watch") or {}
        return found

    def holder(self) -> str:
        with contextlib.suppress(AssertionError):
            return self.kubectl("get", "lease", "bfinfra-operator", "-o", "jsonpath={.spec.holderIdentity}")
        return ""

    def events(self) -> list[str]:
        return sorted(
            each["reason"]
            for each in json.loads(self.kubectl("get", "events", "-o", "json"))["items"]
            if each["involvedObject"]["kind"] == "Site"
        )


def suffix(space: str) -> str:
    return space.removeprefix("operator")


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def metrics(port: int) -> dict[tuple[str, ...], float]:
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def crd(peers: Peers, alone: None) -> None:
    peers.kubectl("apply", "-f", str(ROOT / "deploy/operator/crd.yaml"))
    peers.established("sites.bfinfra.io")


@pytest.fixture
def desk(peers: Peers, crd: None, tmp_path: Path) -> Iterator[Desk]:
    space = f"operator-t{secrets.token_hex(3)}"  # kustomize takes a suffix such as -12e345 for a number
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "resources": [os.path.relpath(ROOT / "deploy/operator", overlay)],
                "namespace": space,
                "nameSuffix": suffix(space),
                "images": [{"name": "bfinfra", "newName": "registry.test/bfinfra", "newTag": "1"}],
            }
        )
    )
    desk = Desk(peers, space, tmp_path, Kubelet(peers, space, tmp_path / "pods"))
    try:
        peers.kubectl("apply", "-k", str(overlay))
        desk.kubectl(
            "wait",
            "--for=condition=Available",
            f"deployment/bfinfra-operator{suffix(space)}",
            "--timeout=30s",
        )
        yield desk
    finally:
        for each in desk.replicas:
            each.kill()
            each.wait()
        # deleted first: else the operator of the next test holds them again
        desk.kubectl("delete", "sites", "--all", "--wait=false")
        for each in desk.kubectl("get", "sites", "-o", "name").split():
            with contextlib.suppress(AssertionError):
                desk.kubectl("patch", each, "--type=merge", "-p", '{"metadata": {"finalizers": []}}')
        peers.kubectl(
            "delete", "namespace", space, f"{space}-a", f"{space}-b", "--wait=false", "--ignore-not-found"
        )
        peers.kubectl(
            "delete",
            "clusterrole,clusterrolebinding",
            "--ignore-not-found",
            *(
                f"{name}{suffix(space)}"
                for name in ("bfinfra-operator", "bfinfra-sites-view", "bfinfra-sites-edit")
            ),
        )


def author(
    desk: Desk,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    protect: bool = False,
    both: bool = True,
) -> None:
    """As a person does it: the file, `operator site`, its Secret, kubectl apply."""
    monkeypatch.chdir(desk.folder)
    names = [f"{desk.space}-a", *([f"{desk.space}-b"] if both else [])]
    spaces = {
        name: {"cluster": "here", "labels": {"team": "a"}, **({"protect": True} if protect else {})}
        for name in names
    }
    (desk.folder / "here.kubeconfig").write_text(desk.peers.kubectl("config", "view", "--flatten", "--raw"))
    (desk.folder / "poc.yaml").write_text(
        yaml.safe_dump(
            {
                "site": "poc",
                "kubernetes_cluster": {"here": {"kubeconfig": {"file": "here.kubeconfig"}}},
                "namespace": spaces,
            }
        )
    )
    assert main(["operator", "site", "poc.yaml", "--namespace", desk.space, "--every", "15m"]) == 0
    output = capsys.readouterr()
    words = re.findall(r"--from-\S+", output.err)
    with contextlib.suppress(AssertionError):
        desk.kubectl("create", "secret", "generic", "poc", *words)
    desk.peers.kubectl("apply", "-f", "-", given=output.out)


def test_the_server_takes_every_example_and_refuses_what_is_wrong(desk: Desk) -> None:
    language: Any = definition(schema(values=False))
    for step in LANGUAGE:
        language = language[step]
    files = [*sorted((ROOT / "specs").glob("*.yaml")), *sorted((ROOT / "specs/kinds").glob("*.yaml"))]
    sites = [
        {
            "apiVersion": "bfinfra.io/v1alpha1",
            "kind": "Site",
            "metadata": {"name": f"x-{n}"},
            "spec": {"site": written(bfinfra.load(file), language)},
        }
        for n, file in enumerate(files)
    ]
    outside = [each for each in sites if '"../' in json.dumps(each)]  # `operator site` refuses them, too
    inside = [each for each in sites if each not in outside]
    assert len(inside) > 25
    words = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    desk.kubectl(*words, given=yaml.safe_dump_all(inside))
    assert desk.refused(*words, given=yaml.safe_dump_all(outside)).count("should match") == len(outside) > 0
    assert "Lookup" not in desk.kubectl("explain", "site.spec.site.gpu_host")

    def site(**spec: Any) -> str:
        return yaml.safe_dump(
            {
                "apiVersion": "bfinfra.io/v1alpha1",
                "kind": "Site",
                "metadata": {"name": "bad"},
                "spec": {"site": {"site": "poc"}, **spec},
            }
        )

    for bad, word in {
        site(
            site={"site": "poc", "vcenter": {"server": "v", "password": {"command": ["x"]}}}
        ): "unknown field",
        site(
            site={"site": "poc", "gpu_host": {"a": {"passthrough": [{"vendor": 4318}]}}}
        ): "must be of type string",
        site(site={"site": "poc", "namespaces": {}}): "unknown field",
        site(interval="soon"): "should match",
        site(approval="Maybe"): "Unsupported value",
        site(files={"../x": {"secretKeyRef": {"name": "a", "key": "b"}}}): "relative",
        site(files={"site.yaml": {"secretKeyRef": {"name": "a", "key": "b"}}}): "not site.yaml",
        site(env={"A": {}}): "oneOf",
    }.items():
        assert word in desk.refused(
            "create", "--dry-run=server", "--validate=strict", "-f", "-", given=bad
        ), word


def test_a_site_is_made_kept_approved_and_destroyed(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = desk.start()
    author(desk, capsys, monkeypatch)
    desk.until(lambda: desk.condition("Ready") == ("True", "AsWanted"))
    assert (
        json.loads(desk.peers.kubectl("get", "namespace", f"{desk.space}-a", "-o", "json"))["metadata"][
            "labels"
        ]["team"]
        == "a"
    )
    assert desk.site()["metadata"]["finalizers"] == ["bfinfra.io/destroy"]
    assert "AsWanted" in desk.kubectl("get", "sites")
    desk.until(lambda: desk.events() == ["Applied"])  # recorded after the status
    assert "a site keeps its name" in desk.refused(
        "patch", "site", "poc", "--type=merge", "-p", '{"spec": {"site": {"site": "other"}}}'
    )
    status = desk.site()["status"]
    (found,) = {
        key: value
        for key, value in metrics(port).items()
        if key[0] == "bfinfra_certificate_expiry_timestamp_seconds"
    }.values()
    assert found > time.time()
    desk.until(lambda: metrics(port).get(("bfinfra_site_ready", desk.space, "poc")) == 1)

    desk.peers.kubectl(
        "label", "namespace", f"{desk.space}-a", "team=moved", "--overwrite"
    )  # the world moves
    desk.kubectl(
        "patch", "site", "poc", "--type=merge", "-p", '{"spec": {"interval": "20m"}}'
    )  # whatever changes it is looked at at once
    desk.until(lambda: "DriftCorrected" in desk.events())
    assert (
        json.loads(desk.peers.kubectl("get", "namespace", f"{desk.space}-a", "-o", "json"))["metadata"][
            "labels"
        ]["team"]
        == "a"
    )
    after = desk.site()["status"]
    assert [each["lastTransitionTime"] for each in after["conditions"]] == [
        each["lastTransitionTime"] for each in status["conditions"]
    ]  # nothing flaps

    author(desk, capsys, monkeypatch, both=False)  # what would be deleted waits
    desk.until(lambda: desk.condition("ApprovalNeeded")[0] == "True")
    plan = desk.site()["status"]["plan"]
    assert [(each["action"], each["address"]) for each in plan["changes"]] == [
        ("delete", f"namespace/{desk.space}-b")
    ]
    desk.kubectl("annotate", "site", "poc", "bfinfra.io/approve=0000000000000000")
    time.sleep(1)
    assert (
        desk.peers.kubectl("get", "namespace", f"{desk.space}-b", "-o", "jsonpath={.status.phase}")
        == "Active"
    )
    desk.kubectl("annotate", "site", "poc", "--overwrite", f"bfinfra.io/approve={plan['digest']}")
    desk.until(lambda: desk.condition("Ready") == ("True", "AsWanted"))
    desk.until(lambda: "bfinfra.io/approve" not in desk.site()["metadata"].get("annotations", {}))
    desk.until(lambda: desk.condition("ApprovalNeeded")[0] == "False")

    desk.kubectl("delete", "site", "poc", "--wait=false")  # nothing is destroyed without a word
    desk.until(lambda: desk.site()["status"].get("plan", {}).get("destroy"))
    desk.kubectl(
        "annotate",
        "site",
        "poc",
        "--overwrite",
        f"bfinfra.io/approve={desk.site()['status']['plan']['digest']}",
    )
    desk.until(lambda: not desk.kubectl("get", "sites", "-o", "name"))
    assert f"{desk.space}-a" not in [
        each["metadata"]["name"]
        for each in json.loads(desk.peers.kubectl("get", "namespaces", "-o", "json"))["items"]
        if each["status"]["phase"] == "Active"
    ]
    desk.until(lambda: ("bfinfra_site_ready", desk.space, "poc") not in metrics(port))
    specs = [pod["spec"] for pod in desk.kubelet.ran.values()]
    assert {spec["containers"][0]["image"] for spec in specs} == {"registry.test/bfinfra:1"}
    assert not any(
        "kube-api-access" in volume["name"] for spec in specs for volume in spec["volumes"]
    )  # no token in any


def test_a_protected_site_is_not_destroyed_and_one_that_is_kept_leaves_everything(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.start()
    author(desk, capsys, monkeypatch, protect=True, both=False)
    desk.until(lambda: desk.condition("Ready") == ("True", "AsWanted"))
    desk.kubectl("delete", "site", "poc", "--wait=false")
    desk.until(lambda: desk.condition("Ready") == ("False", "Failed"))
    assert "protected" in json.dumps(desk.site()["status"])
    desk.kubectl("patch", "site", "poc", "--type=merge", "-p", '{"spec": {"deletion": "Keep"}}')
    desk.until(lambda: not desk.kubectl("get", "sites", "-o", "name"))
    assert (
        desk.peers.kubectl("get", "namespace", f"{desk.space}-a", "-o", "jsonpath={.status.phase}")
        == "Active"
    )


def test_one_replica_leads_and_the_next_takes_over_at_once(desk: Desk) -> None:
    first, second = desk.start(), desk.start()
    desk.until(
        lambda: (
            desk.holder()
            and {metrics(port)["bfinfra_operator_leading",] for port in (first, second)} == {0.0, 1.0}
        )
    )
    leader = next(
        each
        for each, port in zip(desk.replicas, (first, second), strict=True)
        if metrics(port)["bfinfra_operator_leading",] == 1
    )
    before = desk.holder()
    leader.send_signal(signal.SIGTERM)
    assert leader.wait(15) == 0
    desk.until(lambda: desk.holder() not in ("", before), 20)


def test_its_account_may_do_what_it_does_and_no_more(desk: Desk) -> None:
    account = f"system:serviceaccount:{desk.space}:bfinfra-operator{suffix(desk.space)}"

    def can(*words: str) -> bool:
        command = [
            desk.peers.bin / "kubectl",
            "--kubeconfig",
            desk.peers.kubeconfig,
            "auth",
            "can-i",
            *words,
            "--as",
            account,
            "-n",
            desk.space,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == "yes"

    assert all(
        can(*words)
        for words in (
            ("create", "jobs"),
            ("watch", "sites.bfinfra.io"),
            ("patch", "sites.bfinfra.io", "--subresource=status"),
        )
    )
    assert not any(
        can(*words)
        for words in (
            ("get", "secrets"),
            ("list", "secrets"),
            ("delete", "jobs"),
            ("create", "pods"),
            ("delete", "sites.bfinfra.io"),
            ("create", "rolebindings"),
            ("get", "pods", "--subresource=log"),
        )
    )


@pytest.mark.thorough
def test_the_pages_commands_write_a_site_wait_for_it_and_approve_its_plan(desk: Desk) -> None:
    (desk.folder / "here.kubeconfig").write_text(desk.peers.kubectl("config", "view", "--flatten", "--raw"))
    cluster = {"here": {"kubeconfig": {"file": "here.kubeconfig"}}}
    for names in (("a", "b"), ("a",)):
        spaces = {f"{desk.space}-{name}": {"cluster": "here"} for name in names}
        given = {"site": "singapore-poc", "kubernetes_cluster": cluster, "namespace": spaces}
        (desk.folder / f"site-{len(names)}.yaml").write_text(yaml.safe_dump(given))
    config = yaml.safe_load(desk.peers.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = desk.space
    (desk.folder / "reader.kubeconfig").write_text(yaml.safe_dump(config))
    page = blocks((ROOT / "docs/how-to/run-the-operator.md").read_text())
    typed = [each.text for each in page if each.language == "sh"]
    (write,) = (text for text in typed if text.startswith("bfinfra operator site"))
    (approve,) = (text for text in typed if text.startswith("kubectl annotate"))
    desk.start()

    def types(text: str) -> subprocess.Popen[str]:
        path = f"{desk.peers.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(desk.folder), "KUBECONFIG": str(desk.folder / "reader.kubeconfig")}
        return subprocess.Popen(
            ["bash", "-o", "pipefail", "-ec", text],
            cwd=desk.folder,
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )

    shutil.copy(desk.folder / "site-2.yaml", desk.folder / "site.yaml")
    first, rest = write.split("\n", 1)
    with types(first) as written:
        made = re.findall(r"--from-\S+", written.stderr.read() if written.stderr else "")
    assert written.returncode == 0
    desk.kubectl("create", "secret", "generic", "singapore-poc", *made)
    with types(rest) as waiting:
        desk.until(lambda: waiting.poll() is not None)
    assert waiting.returncode == 0
    shutil.copy(desk.folder / "site-1.yaml", desk.folder / "site.yaml")
    with types(first) as written:
        error_text = written.stderr.read() if written.stderr else ""
    assert "kubectl create secret" in error_text and written.returncode == 0, error_text

    def plan() -> Any:
        found = json.loads(desk.kubectl("get", "site", "singapore-poc", "-o", "json"))
        return found.get("status", {}).get("plan")

    desk.until(plan)
    with types(approve.replace("DIGEST", plan()["digest"])):
        pass
    desk.until(lambda: not plan())
    left = desk.peers.kubectl("get", "namespaces", "-o", "json")
    existing = [each for each in json.loads(left)["items"] if each["status"]["phase"] == "Active"]
    assert f"{desk.space}-b" not in [each["metadata"]["name"] for each in existing]


@pytest.fixture
def watchers(desk: Desk) -> Desk:
    """The watchers' manifests, too."""
    overlay = desk.folder / "watchers"
    overlay.mkdir()
    made = {"resources": [os.path.relpath(ROOT / "deploy/watcher", overlay)], "namespace": desk.space}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(made))
    desk.peers.kubectl("apply", "-k", str(overlay))
    return desk


def team(desk: Desk) -> str:
    """The label of the Site's namespace."""
    words = ("get", "namespace", f"{desk.space}-a", "-o", "jsonpath={.metadata.labels.team}")
    return desk.peers.kubectl(*words)


@pytest.mark.thorough
def test_a_watched_site_is_corrected_when_somebody_changes_it(
    watchers: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = watchers
    operator = desk.start()
    author(desk, capsys, monkeypatch, both=False)
    desk.until(lambda: desk.condition("Ready") == ("True", "AsWanted"))
    desk.kubectl("patch", "site", "poc", "--type=merge", "-p", '{"spec": {"watch": true, "interval": "7d"}}')
    desk.until(lambda: desk.condition("Watched") == ("False", "NoWatcher"))
    port = desk.watcher("one")
    desk.until(lambda: desk.condition("Watched") == ("True", "Followed"))
    desk.until(lambda: desk.condition("Ready") == ("True", "AsWanted") and not desk.watch()["differences"])
    desk.until(lambda: metrics(operator).get(("bfinfra_site_watched", desk.space, "poc")) == 1)

    desk.peers.kubectl("label", "namespace", f"{desk.space}-a", "team=moved", "--overwrite")
    began = time.monotonic()
    desk.until(lambda: desk.watch().get("drift"))
    assert time.monotonic() - began < 10
    desk.until(lambda: desk.condition("Drifted")[0] == "True" or "DriftFound" in desk.events())
    desk.until(lambda: team(desk) == "a")
    desk.until(lambda: desk.condition("Drifted")[0] == "False" and "drift" not in desk.watch())
    found = metrics(port)
    assert found["bfinfra_drift_seconds_count", desk.space, "poc"] >= 1
    assert found["bfinfra_watch_following", desk.space, "poc"] == 1
    assert found["bfinfra_watcher_sites",] == 1


@pytest.mark.thorough
def test_a_watcher_that_is_killed_is_followed_by_another_and_its_end_is_orderly(
    watchers: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = watchers
    desk.start()
    author(desk, capsys, monkeypatch, both=False)
    desk.kubectl("patch", "site", "poc", "--type=merge", "-p", '{"spec": {"watch": true}}')
    desk.watcher("one")
    desk.until(lambda: desk.watch().get("following"))
    desk.until(lambda: desk.condition("Ready") == ("True", "AsWanted") and not desk.watch()["differences"])
    second = desk.watcher("two")
    desk.replicas[-2].kill()
    began = time.monotonic()
    desk.peers.kubectl("label", "namespace", f"{desk.space}-a", "team=moved", "--overwrite")
    desk.until(lambda: desk.watch()["replica"] == "two" and desk.watch()["following"])
    took = time.monotonic() - began
    assert took < 15 + SURVEYED
    desk.until(lambda: desk.watch()["why"] == "its watcher one was lost")
    assert 10 < desk.watch()["blindSeconds"] < took + 10
    desk.until(lambda: team(desk) == "a")
    desk.until(lambda: metrics(second)["bfinfra_watch_blind_seconds_total", desk.space, "poc"] > 10)

    desk.replicas[-1].send_signal(signal.SIGTERM)
    assert desk.replicas[-1].wait(30) == 0
    assert (desk.watch()["replica"], desk.watch()["why"]) == ("", "its watcher ended")


def test_a_watchers_account_may_do_what_it_does_and_no_more(watchers: Desk) -> None:
    desk = watchers
    account = f"system:serviceaccount:{desk.space}:bfinfra-watcher"

    def can(space: str, *words: str) -> bool:
        base = [desk.peers.bin / "kubectl", "--kubeconfig", desk.peers.kubeconfig, "auth", "can-i"]
        done = subprocess.run(
            [*base, *words, "--as", account, "-n", space], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() == "yes"

    status = ("patch", "sites.bfinfra.io", "--subresource=status")
    for words in (("get", "secrets"), ("watch", "sites.bfinfra.io"), status, ("create", "leases")):
        assert can(desk.space, *words), words
        assert not can("default", *words), words
    for words in (
        ("list", "secrets"),
        ("watch", "secrets"),
        ("patch", "sites.bfinfra.io"),
        ("create", "pods"),
        ("create", "events"),
        ("delete", "leases"),
    ):
        assert not can(desk.space, *words), words
