"""1,000 Secrets into 50 clusters, beside kubectl: .venv/bin/python benchmarks/kubernetes.py [ROUNDS
[CLUSTERS]]   (after `script/peers up`)

A live kube-apiserver stands in for all clusters. Each has an address of its own (a path in its kubeconfig)
and one namespace, made beforehand; what leaves bfinfra's process is led to the server without that path, and
a list of all Secrets is asked for with the cluster's namespace as a field selector, as each cluster would
show its own only. Nothing else is changed on the way. A cluster has 20 Secrets: four of a token in both
forms, sixteen accounts for registries. kubectl gets the same 1,000 in one file. Seconds and processor time
are of whole processes; kubectl's requests are counted from its log (-v=6) in a run that isn't timed.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from given import numbers
from vcsims import PEERS, binary

import bfinfra
from bfinfra.sandbox.factories.token import make_token

ROOT = Path(__file__).resolve().parents[1]
CLUSTERS, ACCOUNTS, OF_TOKENS = 50, 16, 4
EACH = ACCOUNTS + OF_TOKENS
PARTS = ("apply", "again", "destroy")


class Run(NamedTuple):
    """Seconds, processor seconds of the client, requests, writing ones."""

    seconds: float
    cpu: float
    requests: int = 0
    writes: int = 0


def admin() -> dict[str, Any]:
    """The kubeconfig of the peers, its files taken in. Somebody's own KUBECONFIG is not taken."""
    found = (
        dict(re.findall(r"^export (\w+)=(.*)$", (PEERS / "env").read_text(), re.MULTILINE))
        if (PEERS / "env").exists()
        else {}
    )
    if "KUBECONFIG" not in found:
        raise SystemExit("the peers are not up; start them with: script/peers up")
    config: dict[str, Any] = yaml.safe_load(Path(found["KUBECONFIG"]).read_text())
    for entry in (config["clusters"][0]["cluster"], config["users"][0]["user"]):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in entry:
                entry[f"{name}-data"] = base64.b64encode(Path(entry.pop(name)).read_bytes()).decode()
    return config


def space(own: str, number: int) -> str:
    return f"bench-{own}-{number:02}"


def write_site(folder: Path, own: str, clusters: int) -> None:
    make_token(folder / "token.tar")
    (folder / "registry.password").write_text("hidden-4711")
    config = admin()
    (folder / "admin.kubeconfig").write_text(json.dumps(config))
    server = config["clusters"][0]["cluster"]["server"]
    numbers = range(clusters)
    for n in numbers:
        config["clusters"][0]["cluster"]["server"] = f"{server}/{space(own, n)}"
        (folder / f"{n:02}.kubeconfig").write_text(json.dumps(config))
    account = {
        "server": "registry.example.com:5000",
        "username": "team-a",
        "password": {"file": "registry.password"},
    }
    (folder / "site.yaml").write_text(
        json.dumps(
            {
                "site": f"bench-{own}",
                "kubernetes_cluster": {
                    f"c-{n:02}": {"kubeconfig": {"file": f"{n:02}.kubeconfig"}} for n in numbers
                },
                "bitfusion_token": {"token": {"source": {"tar": "token.tar"}}},
                "token_secret": {
                    f"token-{n:02}-{form}": {
                        "cluster": f"c-{n:02}",
                        "token": "token",
                        "namespaces": [space(own, n)],
                        "form": form,
                    }
                    for n in numbers
                    for form in ("single", "three")
                },
                "registry_credential": {
                    f"pull-{n:02}-{i:02}": {"cluster": f"c-{n:02}", "namespaces": [space(own, n)], **account}
                    for n in numbers
                    for i in range(ACCOUNTS)
                },
            }
        )
    )


class OwnNamespace:
    """Middleware of the transport: one server as many, each of which has one namespace."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        _, name, path = request.url.path.split("/", 2)
        request.url = request.url.copy_with(path=f"/{path}")
        if request.method == "GET" and path == "api/v1/secrets":
            request.url = request.url.copy_merge_params({"fieldSelector": f"metadata.namespace={name}"})
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def child(site: str, part: str) -> None:
    """One apply or destroy; prints what went over the wire."""
    context = bfinfra.RunContext(middleware=(OwnNamespace,))
    allow = bfinfra.Allow(every_delete=True)
    outcome = bfinfra.apply(
        bfinfra.load(site), approve=lambda _: allow, destroy=part == "destroy", context=context
    )
    if outcome.ending != "done":
        raise SystemExit(
            "; ".join([str(each.problem) for each in outcome.endings.values() if each.problem][:3])
            or str(outcome.ending)
        )
    print(json.dumps([outcome.requests, outcome.writes]))


def timed(command: list[str]) -> tuple[Run, str]:
    """A whole process; it must succeed."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    seconds, after = time.perf_counter() - began, os.times()
    return Run(
        seconds, after.children_user - before.children_user + after.children_system - before.children_system
    ), done.stdout


def bfinfra_does(folder: Path, part: str) -> Run:
    run, output = timed([sys.executable, __file__, "--child", str(folder / "site.yaml"), part])
    return run._replace(**dict(zip(("requests", "writes"), json.loads(output), strict=True)))


def kubectl(folder: Path, *words: str, given: str = "") -> str:
    command = [binary("kubectl"), "--kubeconfig", str(folder / "admin.kubeconfig"), *words]
    return subprocess.run(command, input=given, check=True, stdout=subprocess.PIPE, text=True).stdout


def words_of(folder: Path, part: str) -> list[str]:
    file = str(folder / "secrets.json")
    verb = (
        ["delete", "--wait=false", "-f", file]
        if part == "destroy"
        else ["apply", "--server-side", "-f", file]
    )
    return [binary("kubectl"), "--kubeconfig", str(folder / "admin.kubeconfig"), *verb]


def kubectl_does(folder: Path, part: str) -> Run:
    return timed(words_of(folder, part))[0]


def counted(folder: Path, part: str) -> Run:
    """How often kubectl asks, and writes."""
    log = subprocess.run([*words_of(folder, part), "-v=6"], check=True, capture_output=True, text=True).stderr
    verbs = re.findall(r'verb="(\w+)"', log)
    return Run(0, 0, len(verbs), sum(verb != "GET" for verb in verbs))


def standing(folder: Path, own: str) -> list[dict[str, Any]]:
    found = json.loads(kubectl(folder, "get", "secrets", "-A", "-o", "json"))["items"]
    return [each for each in found if each["metadata"]["namespace"].startswith(f"bench-{own}-")]


def must_stand(folder: Path, own: str, count: int) -> list[dict[str, Any]]:
    found = standing(folder, own)
    assert len(found) == count, f"{len(found)} Secrets stand, not {count}"
    return found


def write_file(folder: Path, secrets: list[dict[str, Any]]) -> None:
    """What stands, as a user would have written it."""
    kept = ("name", "namespace", "labels", "annotations")
    items = [
        {**each, "metadata": {key: each["metadata"][key] for key in kept if key in each["metadata"]}}
        for each in secrets
    ]
    (folder / "secrets.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def measured(folder: Path, own: str, clusters: int, rounds: int) -> dict[tuple[str, str], list[Run]]:
    found: dict[tuple[str, str], list[Run]] = {}
    total = clusters * EACH
    for _ in range(rounds):
        for who, does in (("bfinfra", bfinfra_does), ("kubectl", kubectl_does)):
            for part in PARTS:
                found.setdefault((who, part), []).append(does(folder, part))
                secrets = must_stand(folder, own, 0 if part == "destroy" else total)
                if (who, part) == ("bfinfra", "apply"):
                    write_file(folder, secrets)
    for part in PARTS:
        count = counted(folder, part)
        found["kubectl", part] = [
            run._replace(requests=count.requests, writes=count.writes) for run in found["kubectl", part]
        ]
    return found


def main() -> None:
    asked = numbers(__doc__, rounds=3, clusters=CLUSTERS)
    rounds, clusters = asked.rounds, asked.clusters
    own, total = uuid.uuid4().hex[:6], clusters * EACH
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["BFINFRA_STATE_HOME"] = str(folder / "state")
        write_site(folder, own, clusters)
        spaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space(own, n)}}
            for n in range(clusters)
        ]
        kubectl(
            folder,
            "create",
            "-f",
            "-",
            given=json.dumps({"apiVersion": "v1", "kind": "List", "items": spaces}),
        )
        try:
            versions = json.loads(kubectl(folder, "version", "-o", "json"))
            found = measured(folder, own, clusters, rounds)
        finally:
            kubectl(
                folder, "delete", "namespace", "--wait=false", *(each["metadata"]["name"] for each in spaces)
            )
    print(
        f"bfinfra {version('bfinfra')}, Python {platform.python_version()}, lightkube "
        f"{version('lightkube')}; kubectl {versions['clientVersion']['gitVersion']}, "
        f"kube-apiserver {versions['serverVersion']['gitVersion']}; {platform.machine()}, "
        f"{os.cpu_count()} processors; {rounds} rounds"
    )
    print(
        f"{total} Secrets in {clusters} clusters\n{'':<22}{'median':>10}{'fastest':>10}{'processor':>11}"
        f"{'requests':>10}{'writing':>9}{'per Secret':>12}{'of kubectl':>12}"
    )
    for (who, part), runs in found.items():
        median, last = statistics.median(run.seconds for run in runs), runs[-1]
        ratio = (
            f"{median / statistics.median(run.seconds for run in found['kubectl', part]):>11.2f}×"
            if who == "bfinfra"
            else ""
        )
        print(
            f"{who + ' ' + part:<22}{median:>8.1f} s{min(run.seconds for run in runs):>8.1f} "
            f"s{statistics.median(run.cpu for run in runs):>9.1f} s"
            f"{last.requests:>10}{last.writes:>9}{last.requests / total:>12.2f}{ratio}"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
    else:
        main()
