"""1,000 Sites and one operator on a live kube-apiserver, Jobs' pods played by kwok: .venv/bin/python
benchmarks/sites.py [SITES [JOBS]]   (after `script/peers build`)

Starts a cluster of its own (etcd, kube-apiserver, controller-manager, scheduler, kwok) and throws it away; at
most ten minutes. The operator is installed by its manifests and runs as its own account. A look takes 2 to 4
s, which kwok waits; it leaves the result of a site that is as it should be. So what is measured is the
operator: how long after a change its Job is there and its status says so, what it asks of the API server
(counted from the server's audit log, by account), its memory and processor time. The cluster's own work runs
on the same processors.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import given
import yaml
from vcsims import BIN, binary

from bfinfra.backends.kubernetes import ClusterClient, kubeconfig
from bfinfra.backends.transport import Transport
from bfinfra.model.secret import Secret
from bfinfra.operator.manifest import API
from bfinfra.operator.result import Outcome, Result

ROOT = Path(__file__).resolve().parents[1]
SPACE, NODES, INTERVAL, WINDOW, CHANGED, LIMIT = "bfinfra-system", 10, 900, 60, 100, 600
RESULT = Result(
    Outcome.AGREED,
    resources=20,
    seconds=(2.5, 0.0),
    certificates={"vcsa.example.com:443": 1_900_000_000},
    tokens={"main": 1_900_000_000},
).text()
OTHERS = [f"system:serviceaccount:fleet:{name}" for name in ("bfinfra-watcher", "followed")]
"""Accounts of benchmarks/watched.py."""
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "Metadata", "users": [f"system:serviceaccount:{SPACE}:bfinfra-operator", *OTHERS]},
        {"level": "None"},
    ],
}


class Bench:
    """The cluster and its clock; every wait is bounded by what is left of ten minutes."""

    def __init__(self, folder: Path, count: int, jobs: int) -> None:
        self.folder, self.count, self.jobs, self.until = folder, count, jobs, time.monotonic() + LIMIT
        self.config = folder / "kube/admin.kubeconfig"
        self.cluster = ClusterClient(
            Transport(), "bench", lambda: kubeconfig.read(Secret("file", str(self.config)))
        )
        self.stack = contextlib.ExitStack()
        self.seen: dict[tuple[str, str, int], float] = {}
        """(Job or Site, name, generation) → when it was first seen made, or its status to be of that
        generation.
        """

    def kubectl(self, *words: str, given: str = "") -> str:
        return subprocess.run(
            [binary("kubectl"), "--kubeconfig", self.config, *words],
            input=given,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def start(self) -> None:
        env = {
            **os.environ,
            "KUBE_DIR": str(self.folder / "kube"),
            "KUBE_WITH": "kcm scheduler",
            "KUBE_BIN": str(BIN),
        }
        (self.folder / "audit.yaml").write_text(yaml.safe_dump(AUDIT))
        given = {
            **env,
            "KUBE_APISERVER_ARGS": (
                f"--audit-policy-file={self.folder}/audit.yaml --audit-log-path={self.folder}/audit.log "
                "--audit-log-mode=batch"
            ),
        }
        self.stack.callback(subprocess.run, [ROOT / "tests/peers/kube.sh", "down"], env=env, check=False)
        subprocess.run([ROOT / "tests/peers/kube.sh", "up"], env=given, check=True, stdout=subprocess.DEVNULL)
        self.spawn(
            "kwok",
            [
                binary("kwok"),
                "--kubeconfig",
                self.config,
                "--config",
                self.stages(),
                "--manage-all-nodes",
                "--node-lease-duration-seconds",
                "40",
                "--server-address",
                f"127.0.0.1:{port()}",
            ],
        )
        size = {"cpu": "1000", "memory": "4000Gi", "pods": "500"}
        self.kubectl(
            "create",
            "-f",
            "-",
            given=json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": [
                        {
                            "apiVersion": "v1",
                            "kind": "Node",
                            "metadata": {"name": f"fake-{n}"},
                            "status": {"allocatable": size, "capacity": size},
                        }
                        for n in range(NODES)
                    ],
                }
            ),
        )
        self.kubectl("apply", "-k", str(ROOT / "deploy/operator"))
        self.kubectl("scale", "deployment", "bfinfra-operator", "-n", SPACE, "--replicas=1")
        self.kubectl(
            "wait", "--for=condition=Available", "deployment/bfinfra-operator", "-n", SPACE, "--timeout=60s"
        )

    def stages(self) -> Path:
        """kwok's own, but that a Job's pod runs a while and leaves a result."""
        found = subprocess.run(
            ["go", "mod", "download", "-json", "sigs.k8s.io/kwok@v0.8.0"],
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        folder = Path(json.loads(found)["Dir"]) / "kustomize/stage"
        texts = [
            (folder / each).read_text()
            for each in (
                "node/fast/node-initialize.yaml",
                "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
                "pod/fast/pod-ready.yaml",
                "pod/fast/pod-delete.yaml",
            )
        ]
        ends = yaml.safe_load((folder / "pod/fast/pod-complete.yaml").read_text())
        ends["spec"]["delay"] = {"durationMilliseconds": 2000, "jitterDurationMilliseconds": 4000}
        ends["spec"]["next"]["statusTemplate"] = ends["spec"]["next"]["statusTemplate"].replace(
            "reason: Completed", f"reason: Completed\n      message: '{RESULT}'"
        )
        path = self.folder / "stages.yaml"
        path.write_text("\n---\n".join([*texts, yaml.safe_dump(ends)]))
        return path

    def spawn(
        self, name: str, command: list[Any], env: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        log = self.stack.enter_context((self.folder / f"{name}.log").open("w"))
        process = subprocess.Popen(
            [str(word) for word in command], stdout=log, stderr=subprocess.STDOUT, env=env
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def fleet(self) -> None:
        self.kubectl("create", "namespace", "fleet")
        cluster = {"here": {"kubeconfig": {"file": "here.kubeconfig"}}}

        def make(number: int) -> None:
            spaces = {
                f"team-{number}-{n}": {"cluster": "here", "labels": {"team": f"t{number}"}} for n in range(19)
            }
            spec = {
                "interval": f"{INTERVAL // 60}m",
                "files": {"here.kubeconfig": {"secretKeyRef": {"name": "here", "key": "kubeconfig"}}},
                "site": {"site": f"site-{number}", "kubernetes_cluster": cluster, "namespace": spaces},
            }
            self.cluster.create(
                {
                    "apiVersion": API,
                    "kind": "Site",
                    "metadata": {"name": f"site-{number}", "namespace": "fleet"},
                    "spec": spec,
                }
            )

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(make, range(self.count)))

    def operator(self) -> subprocess.Popen[bytes]:
        config = yaml.safe_load(self.config.read_text())
        config["users"][0]["user"] = {
            "token": self.kubectl("create", "token", "bfinfra-operator", "-n", SPACE, "--duration=1h").strip()
        }
        own = self.folder / "operator.kubeconfig"
        own.write_text(yaml.safe_dump(config))
        pod = self.kubectl("get", "pods", "-n", SPACE, "-o", "jsonpath={.items[0].metadata.name}")
        command = [
            sys.executable,
            "-m",
            "bfinfra",
            "operator",
            "run",
            "--kubeconfig",
            own,
            "--lease",
            f"{SPACE}/bfinfra-operator",
            "--metrics",
            f"127.0.0.1:{port()}",
            "--jobs",
            self.jobs,
        ]
        return self.spawn("operator", command, {**os.environ, "HOSTNAME": pod})

    def watch(self, path: str, kind: str) -> None:
        """Note when each object was first seen; kubectl is the watcher."""
        process = subprocess.Popen(
            [
                binary("kubectl"),
                "--kubeconfig",
                self.config,
                "get",
                path,
                "-n",
                "fleet",
                "--watch",
                "--output-watch-events",
                "-o",
                COLUMNS[kind],
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.stack.callback(process.kill)

        def read() -> None:
            for line in process.stdout or ():
                if (words := line.split())[-1].isdecimal():
                    self.seen.setdefault((kind, words[-2], int(words[-1])), time.monotonic())

        threading.Thread(target=read, daemon=True).start()

    def wait(self, what: str, holds: Any) -> float:
        began = time.monotonic()
        while not holds():
            if time.monotonic() > self.until:
                raise SystemExit(
                    f"{what}: not within {LIMIT} s\n{(self.folder / 'operator.log').read_text()[-2000:]}"
                )
            time.sleep(0.25)
        return time.monotonic() - began

    def requests(self, account: str = f"{SPACE}:bfinfra-operator") -> list[str]:
        """All that an account asked so far, as verb and resource."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if not entry["user"]["username"].endswith(account):
                    continue
                ref = entry.get("objectRef") or {}
                found.append(
                    " ".join(
                        filter(
                            None,
                            (
                                entry["verb"],
                                ref.get("resource", entry["requestURI"]),
                                ref.get("subresource", ""),
                            ),
                        )
                    )
                )
        return found


COLUMNS = {
    "job": "custom-columns=E:.type,N:.object.metadata.ownerReferences[0].name,"
    "G:.object.metadata.annotations.bfinfra\\.io/generation",
    "site": "custom-columns=E:.type,N:.object.metadata.name,G:.object.status.observedGeneration",
}


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def memory(pid: int) -> tuple[int, int]:
    """RSS now and at its peak, MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    now, peak = (int(re.search(rf"{name}:\s+(\d+)", text)[1]) // 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[index]  # the kernel writes both
    return now, peak


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shown(name: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return (
        f"{name:44} median {statistics.median(ordered):6.2f} s   p95 "
        f"{ordered[int(len(ordered) * 0.95)]:6.2f} s   n {len(ordered)}"
    )


@contextlib.contextmanager
def bench(count: int, jobs: int) -> Iterator[Bench]:
    folder = Path(tempfile.mkdtemp(prefix="bfinfra-sites-"))
    made = Bench(folder, count, jobs)
    try:
        with made.stack:
            made.start()
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def changes(run: Bench) -> tuple[list[float], list[float]]:
    """Seconds from a change of a Site to its Job, and to its status, a change every tenth of a second."""
    names = [f"site-{number}" for number in range(min(CHANGED, run.count))]
    at: dict[str, float] = {}
    for name in names:
        at[name] = time.monotonic()
        run.cluster.patch(API, "Site", name, {"spec": {"interval": f"{INTERVAL // 60 + 1}m"}}, "fleet")
        time.sleep(0.1)
    run.wait("changed Sites", lambda: all(("site", name, 2) in run.seen for name in names))
    return [[run.seen[kind, name, 2] - at[name] for name in names] for kind in ("job", "site")]  # type: ignore[return-value]  # two lists


def main(count: int, jobs: int) -> None:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"):
        binary(name)  # fails before anything is started
    with bench(count, jobs) as run:
        print(
            f"bfinfra {version('bfinfra')}, Python {platform.python_version()}, kopf {version('kopf')}; "
            f"Kubernetes 1.36, kwok 0.8; {platform.machine()}, {os.cpu_count()} processors; "
            f"{count} Sites, every {INTERVAL} s, {jobs} Jobs at a time"
        )
        run.fleet()
        run.watch("jobs", "job")
        run.watch("sites", "site")
        operator = run.operator()
        first = run.wait("all Sites", lambda: sum(kind == "site" for kind, _, _ in list(run.seen)) >= count)
        print(
            f"{'all looked at for the first time, all at once':44} {first:13.1f} s   "
            f"{len(run.requests()) / count:.2f} requests a Site   {cpu(operator.pid) / count * 1000:.0f}"
            f" ms of processor a Site   RSS {memory(operator.pid)[0]} MiB"
        )
        before, used, jobs_before = len(run.requests()), cpu(operator.pid), time.monotonic()
        time.sleep(WINDOW)
        made, window = Counter(run.requests()[before:]), time.monotonic() - jobs_before
        looks = made["create jobs"]
        print(
            f"{'then, nothing changes':44} {window:13.1f} s   {sum(made.values()) / looks:.2f} requests "
            f"a look   {looks} looks   {', '.join(f'{n} {what}' for what, n in made.most_common(6))}"
        )
        print(
            f"{'operator, over that time':44} {(cpu(operator.pid) - used) / window * 100:11.1f} % of a "
            f"processor   RSS {memory(operator.pid)[0]} MiB, peak {memory(operator.pid)[1]} MiB"
        )
        to_job, to_status = changes(run)
        print(shown("a Site changed, its Job is there", to_job))
        print(shown("a Site changed, its status says so (look 2-4 s)", to_status))


if __name__ == "__main__":
    asked = given.numbers(__doc__, sites=1000, jobs=300)
    main(asked.sites, asked.jobs)
