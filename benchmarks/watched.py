"""Sites that watchers follow, on a live kube-apiserver: .venv/bin/python benchmarks/watched.py
[SITES [WATCHERS]] [--without-operator]   (after `script/peers build`)

Starts a cluster of its own as benchmarks/sites.py does, and throws it away. Each Site has a namespace in that
same cluster, which a real apply has made. The watchers are installed by their manifests, and are as many
processes with their account; the operator runs too, its Jobs are played by kwok. Measured: until all are
followed; memory, processor and requests at rest; from a change by hand to `status.watch` and to the condition
of the operator; one watcher killed: until its Sites are followed again, for how long they say that nobody
followed them, and whether a change of each, made meanwhile, is reported. Sites' servers, watchers and
operator share the same processors.
"""

from __future__ import annotations

import os
import platform
import secrets
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import given
import yaml
from sites import ROOT, Bench, bench, cpu, memory, port, shown
from vcsims import binary

import bfinfra
from bfinfra.engine.guard import Allow
from bfinfra.model.events import Ending
from bfinfra.operator.desired import FINALIZER
from bfinfra.operator.manifest import API

FLEET, WINDOW, CHANGED, LIMIT = "fleet", 60, 50, 3600
PAUSE = 5.0  # seconds between two looks at all Sites
SETTLED = 5  # seconds until a report that is on its way has come


def account(run: Bench, name: str) -> str:
    """A kubeconfig of a service account of the fleet."""
    config = yaml.safe_load(run.config.read_text())
    token = run.kubectl("create", "token", name, "-n", FLEET, "--duration=4h").strip()
    config["users"][0]["user"] = {"token": token}
    path = run.folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def site(number: int) -> dict[str, Any]:
    cluster = {"here": {"kubeconfig": {"file": "here.kubeconfig"}}}
    space = {f"team-{number}": {"cluster": "here", "labels": {"team": "a"}}}
    return {"site": f"site-{number}", "kubernetes_cluster": cluster, "namespace": space}


def fleet(run: Bench) -> None:
    """The Sites, what they describe, and an account that follows it."""
    run.kubectl("create", "namespace", FLEET)
    run.kubectl("create", "serviceaccount", "followed", "-n", FLEET)
    run.kubectl(
        "create",
        "clusterrolebinding",
        "followed",
        "--clusterrole=cluster-admin",
        f"--serviceaccount={FLEET}:followed",
    )
    config = account(run, "followed")
    run.kubectl("create", "secret", "generic", "here", "-n", FLEET, f"--from-file=kubeconfig={config}")
    folder = run.folder / "sites"
    folder.mkdir()
    (folder / "here.kubeconfig").write_text(Path(config).read_text())

    def make(number: int) -> None:
        path = folder / f"site-{number}.yaml"
        path.write_text(yaml.safe_dump(site(number)))
        ended = bfinfra.apply(bfinfra.load(path), approve=lambda _: Allow())
        if ended.ending is not Ending.DONE:
            raise SystemExit(f"site-{number}: {ended.endings}")
        files = {"here.kubeconfig": {"secretKeyRef": {"name": "here", "key": "kubeconfig"}}}
        meta = {"name": f"site-{number}", "namespace": FLEET, "finalizers": [FINALIZER]}
        spec = {"watch": True, "interval": "1d", "files": files, "site": site(number)}
        run.cluster.create({"apiVersion": API, "kind": "Site", "metadata": meta, "spec": spec})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(run.count)))


def watchers(run: Bench, count: int) -> dict[str, subprocess.Popen[bytes]]:
    """Install and start them: each may follow what is left of one that fails."""
    overlay = run.folder / "overlay"
    overlay.mkdir()
    made = {"resources": [os.path.relpath(ROOT / "deploy/watcher", overlay.resolve())], "namespace": FLEET}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(made))
    run.kubectl("apply", "-k", str(overlay))
    run.kubectl("scale", "deployment", "bfinfra-watcher", "-n", FLEET, "--replicas=0")
    config, found = account(run, "bfinfra-watcher"), {}
    most = -(-run.count // max(1, count - 1))
    for number in range(count):
        name, home = f"watcher-{number}", run.folder / f"home-{number}"
        home.mkdir()
        words = ["--kubeconfig", config, "--namespace", FLEET, "--name", name, "--sites", str(most)]
        command = [sys.executable, "-m", "bfinfra", "operator", "watcher", *words]
        env = {**os.environ, "HOME": str(home), "BFINFRA_STATE_HOME": str(home)}
        found[name] = run.spawn(name, [*command, "--metrics", f"127.0.0.1:{port()}"], env)
    return found


NAMES = ("replica", "following", "blindSeconds", "changed", "drift.count")
FIELDS = "|".join(("{.metadata.name}", *(f"{{.status.watch.{name}}}" for name in NAMES)))


def watched(run: Bench) -> dict[str, dict[str, str]]:
    """What the status of each Site says of its watcher, as kubectl prints it; "" for what is not there."""
    text = f'jsonpath={{range .items[*]}}{FIELDS}{{"\\n"}}{{end}}'
    try:
        lines = run.kubectl("get", "sites", "-n", FLEET, "-o", text).splitlines()
    except subprocess.CalledProcessError:  # the cluster is too busy to answer
        return {"": dict.fromkeys(NAMES, "")}
    return {
        name: dict(zip(NAMES, words, strict=True)) for name, *words in (line.split("|") for line in lines)
    }


def followed(run: Bench, *, by: set[str]) -> bool:
    time.sleep(PAUSE)  # or the looks at 1,000 Sites would be most of the work
    return all(each["following"] == "true" and each["replica"] in by for each in watched(run).values())


def changes(run: Bench, operator: object) -> tuple[list[float], list[float]]:
    """Seconds from a label that somebody changes to the watcher's report, and to the operator's condition if
    there is one.
    """
    names = [f"site-{number}" for number in range(min(CHANGED, run.count))]
    at: dict[str, float] = {}
    told: dict[str, float] = {}
    turned: dict[str, float] = {}
    drifted = '.status.conditions[?(@.type=="Drifted")].status'
    columns = f"custom-columns=N:.metadata.name,W:.status.watch.drift.count,D:{drifted}"
    kubectl = [binary("kubectl"), "--kubeconfig", run.config, "get", "sites", "-n", FLEET, "--watch-only"]
    watching = subprocess.Popen([*kubectl, "-o", columns], stdout=subprocess.PIPE, text=True)
    run.stack.callback(watching.kill)

    def read() -> None:
        for line in watching.stdout or ():
            name, count, status = line.split()
            if name in at and count.isdecimal():
                told.setdefault(name, time.monotonic())
            if name in at and status == "True":
                turned.setdefault(name, time.monotonic())

    threading.Thread(target=read, daemon=True).start()
    time.sleep(5)  # until kubectl watches
    for name in names:
        at[name] = time.monotonic()
        body = {"metadata": {"labels": {"team": secrets.token_hex(3)}}}
        run.cluster.patch("v1", "Namespace", name.replace("site", "team"), body)
        time.sleep(0.2)
    each = (told, turned) if operator else (told,)
    run.wait("the changes", lambda: all(len(known) == len(names) for known in each))
    return [told[name] - at[name] for name in names], [turned[name] - at[name] for name in names if operator]


def main(count: int, replicas: int, *, alone: bool) -> None:
    with bench(count, 50) as run:
        run.until = time.monotonic() + LIMIT
        print(
            f"bfinfra {version('bfinfra')}, Python {platform.python_version()}; Kubernetes 1.36, kwok 0.8; "
            f"{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; "
            f"{count} Sites, {replicas} watchers{', no operator' * alone}"
        )
        began = time.monotonic()
        fleet(run)
        print(f"{'until all are applied':44} {time.monotonic() - began:8.1f} s", flush=True)
        operator = None if alone else run.operator()
        if operator:
            run.wait("Sites are looked at", lambda: looked_at(run))
            print(f"{'until all are looked at':44} {time.monotonic() - began:8.1f} s", flush=True)
        processes = watchers(run, replicas)
        first = run.wait("all Sites", lambda: followed(run, by=set(processes)))
        used = sum(cpu(each.pid) for each in processes.values())
        print(
            f"{'until all are followed':44} {first:8.1f} s   "
            f"{used / count * 1000:.0f} ms of processor a Site",
            flush=True,
        )
        rest(run, processes, operator)
        for name, seconds in zip(
            ("status.watch", "the condition Drifted"), changes(run, operator), strict=True
        ):
            if seconds:
                print(shown(f"changed by hand, {name} says so", seconds), flush=True)
        killed(run, processes)


def looked_at(run: Bench) -> bool:
    time.sleep(PAUSE)
    ready = 'custom-columns=S:.status.conditions[?(@.type=="Ready")].status'
    return {*run.kubectl("get", "sites", "-n", FLEET, "--no-headers", "-o", ready).split()} == {"True"}


def rest(
    run: Bench, processes: dict[str, subprocess.Popen[bytes]], operator: subprocess.Popen[bytes] | None
) -> None:
    """Memory, processor and requests while nothing changes."""
    time.sleep(30)  # Jobs that the start has caused
    accounts = {name: f"{FLEET}:{name}" for name in ("bfinfra-watcher", "followed")}
    before = {name: len(run.requests(account)) for name, account in accounts.items()}
    used, began = [cpu(each.pid) for each in processes.values()], time.monotonic()
    of_operator = cpu(operator.pid) if operator else 0.0
    time.sleep(WINDOW)
    seconds = time.monotonic() - began
    busy = [cpu(each.pid) - was for each, was in zip(processes.values(), used, strict=True)]
    sizes = [memory(each.pid)[0] for each in processes.values()]
    sites = Counter(each["replica"] for each in watched(run).values())
    threads = [sum(1 for _ in Path(f"/proc/{each.pid}/task").iterdir()) for each in processes.values()]
    print(
        f"{'at rest, each watcher':44} {sum(busy) / seconds / len(busy) * 100:8.1f} % of a processor   "
        f"RSS {', '.join(map(str, sizes))} MiB   Sites {', '.join(str(sites[name]) for name in processes)}   "
        f"threads {', '.join(map(str, threads))}"
    )
    if operator:
        part = (cpu(operator.pid) - of_operator) / seconds * 100
        print(
            f"{'at rest, the operator':44} {part:8.1f} % of a processor   RSS {memory(operator.pid)[0]} MiB"
        )
    for name, account_name in accounts.items():
        made = Counter(run.requests(account_name)[before[name] :])
        print(
            f"{f'at rest, requests of {name}':44} {sum(made.values()) / seconds:8.1f} a second   "
            f"{', '.join(f'{n} {what}' for what, n in made.most_common(5))}"
        )


def killed(run: Bench, processes: dict[str, subprocess.Popen[bytes]]) -> None:
    """One watcher, with a signal that nobody can handle; while nobody follows its Sites, a label of each is
    changed.
    """
    name = next(iter(processes))
    before = watched(run)
    lost = [each for each, watch in before.items() if watch["replica"] == name]
    processes.pop(name).send_signal(signal.SIGKILL)
    for each in lost:
        body = {"metadata": {"labels": {"team": secrets.token_hex(3)}}}
        run.cluster.patch("v1", "Namespace", each.replace("site", "team"), body)
    took = run.wait("taken over", lambda: followed(run, by=set(processes)))
    time.sleep(SETTLED)
    found = watched(run)
    blind = [float(found[each]["blindSeconds"]) for each in lost]
    print(
        f"{'a watcher killed, its Sites are followed':44} {took:8.1f} s   {len(lost)} Sites   not followed, "
        f"as they say: median {statistics.median(blind):.1f} s, at most {max(blind):.1f} s"
    )
    missed = [
        each
        for each in lost
        if not found[each]["drift.count"] or found[each]["changed"] == before[each]["changed"]
    ]
    print(f"{'changed meanwhile':44} {len(lost):8} Sites   lost {len(missed)} {' '.join(missed[:5])}")
    sizes = ", ".join(str(memory(each.pid)[0]) for each in processes.values())
    print(f"{'then, the others':44} RSS {sizes} MiB")


if __name__ == "__main__":
    alone = "--without-operator" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--without-operator"]
    asked = given.numbers(__doc__, sites=1000, watchers=6)
    main(asked.sites, asked.watchers, alone=alone)
