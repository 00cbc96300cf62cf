"""How soon `bfinfra watch` knows of drift, and what it costs at rest: .venv/bin/python benchmarks/watch.py
[SERVERS ...] [--changes N] [--rest SECONDS] [--told] [--cluster | --only-cluster]
(10 and 300 servers, 200 changes, 60 s)

vcsim with so many servers, and with --cluster the kube-apiserver of `script/peers up` as well. One process of
`bfinfra watch --output jsonl` follows them. Changes come one by one, half by govc or kubectl, half by
pyVmomi: power, memory, processors, reservation, an option, a property of the vApp, the mark; labels, Secrets,
and objects that go. Every second one takes the one before back. Printed are:

- seconds from the return of the call that changes something until the report is read: median, 95th
  percentile, longest. Of objects in Kubernetes also how long until `kubectl get --watch` prints them; of
  vcsim how long until its answer arrived: the rest is bfinfra's own.
- at rest, over --rest seconds: processor as part of one, resident memory, bytes both ways, and requests, with
  everything that is read once a minute; with --changes 0 only that.
- with --told a relay in front of vcsim tells of each change at once, as a vCenter does (told.py).
- beside it the same of `bfinfra drift` once a minute, its largest memory, and of `kubectl get --watch`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import kubernetes
import told
import vcsims
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim
from vcsims import Vcsim

from bfinfra.backends.vcenter import refs

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 900  # seconds until a report must come: vcsim takes minutes with 10,000 servers
PAUSE = 0.3  # seconds without an answer that end what belongs together
TICKS = os.sysconf("SC_CLK_TCK")
Line = tuple[float, dict[str, Any]]
MARKS: dict[str, str] = {}
"""The marks of machines that have none for now."""


@dataclass
class Watch:
    """A process that watches. `lines`: when a report came, and the report."""

    process: subprocess.Popen[str]
    lines: queue.SimpleQueue[Line] = field(default_factory=queue.SimpleQueue)
    found: set[str] = field(default_factory=set)

    def read(self) -> None:
        """All reports, to the end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), json.loads(line)))

    def until(self, address: str, *, drifted: bool) -> float:
        """When a report came after which the resource has drifted, or has not."""
        limit = time.monotonic() + LONGEST
        while time.monotonic() < limit:
            with contextlib.suppress(queue.Empty):
                at, report = self.lines.get(timeout=1)
                self.found = {each["address"] for each in report["findings"]}
                if (address in self.found) is drifted:
                    return at
        raise SystemExit(f"no report of {address} within {LONGEST} s; reported are {sorted(self.found)}")

    def first(self) -> None:
        """Wait for the first report, which must find nothing."""
        _, report = self.lines.get(timeout=1800)
        assert not report["findings"], report["findings"][:3]
        assert not report["unreadable"], report["unreadable"][:3]

    def cost(self) -> tuple[float, int]:
        """Processor seconds up to now, and MiB resident."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return (int(fields[11]) + int(fields[12])) / TICKS, pages * os.sysconf("SC_PAGESIZE") >> 20


@contextlib.contextmanager
def watching(site: Path, state: Path) -> Iterator[Watch]:
    """`bfinfra watch`, until the block is left."""
    words = [sys.executable, "-m", "bfinfra", "watch", str(site), "--output", "jsonl"]
    env = {**os.environ, "BFINFRA_STATE_HOME": str(state)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT) as process:
        made = Watch(process)
        threading.Thread(target=made.read, daemon=True).start()
        try:
            yield made
        finally:
            process.terminate()


class Beside:
    """Work in a thread of its own while the block runs; `over` is set at its end."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.over = threading.Event()
        self.thread = threading.Thread(target=work)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


class Answers(Beside):
    """When the server answered. vcsim takes seconds for that with hundreds of servers."""

    def __init__(self, down: Callable[[], int]) -> None:
        super().__init__(self.look)
        self.down = down
        self.moments: list[float] = []

    def look(self) -> None:
        before = self.down()
        while not self.over.wait(0.005):
            now = self.down()
            if now != before:
                self.moments.append(time.monotonic())
            before = now

    def before(self, report: float) -> float:
        """When the answers began that led to a report, without a pause in between."""
        began = report
        for each in reversed(self.moments):
            if each <= report:
                if began - each > PAUSE:
                    break
                began = each
        return began


class Follower:
    """Another client that is told of changes: when it heard of an object last, by its id or name."""

    def __init__(self) -> None:
        self.heard: dict[str, float] = {}
        self.over = False

    def kubectl(self, kubeconfig: str, resource: str, spaces: str) -> None:
        """Follow objects with `kubectl get --watch`."""
        words = [vcsims.binary("kubectl"), f"--kubeconfig={kubeconfig}", "get", resource, *spaces.split()]
        with subprocess.Popen(
            [*words, "--watch", "--output=name"], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.heard[line.strip()] = time.monotonic()
                if self.over:
                    break
            process.terminate()


@dataclass
class Times:
    """Seconds until the report, and until another client knew."""

    ours: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)

    def line(self, name: str) -> str:
        """One line of the table."""
        each = (figure(self.ours, at) for at in (50, 95, 100))
        beside = (figure(self.others, at) for at in (50, 95, 100))
        return f"{name:<34}{len(self.ours):>6}{''.join(each)}   {''.join(beside)}"


def figure(times: Sequence[float], percent: int) -> str:
    if not times:
        return "       -"
    ordered = sorted(times)
    return f"{ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]:>7.2f}s"


def settled(task: Any) -> None:
    while task.info.state not in ("success", "error"):
        time.sleep(0.002)
    if task.info.state == "error":
        raise SystemExit(f"vcsim refuses a change: {task.info.error.msg}")


def spec(**fields: Any) -> vim.vm.ConfigSpec:
    return vim.vm.ConfigSpec(**fields)


def reservation(vm: Any, back: bool) -> None:
    whole = vm.config.hardware.memoryMB
    settled(
        vm.ReconfigVM_Task(
            spec(
                memoryReservationLockedToMax=back,
                memoryAllocation=vim.ResourceAllocationInfo(reservation=whole if back else 0),
            )
        )
    )


def property_(vm: Any, back: bool) -> None:
    (found,) = (each for each in vm.config.vAppConfig.property if each.id == "hostname")
    found.value = f"{vm.name}.example.local" if back else "elsewhere.example.local"
    one = vim.vApp.PropertySpec(operation="edit", info=found)
    settled(vm.ReconfigVM_Task(spec(vAppConfig=vim.vApp.VmConfigSpec(property=[one]))))


def mark(vm: Any, back: bool) -> None:
    if not back:
        MARKS[vm.name] = {o.key: o.value for o in vm.config.extraConfig}["bfinfra.mark"]
    value = vim.option.OptionValue(key="bfinfra.mark", value=MARKS[vm.name] if back else "")
    settled(vm.ReconfigVM_Task(spec(extraConfig=[value])))


PATHS = {
    "power": "runtime.powerState",
    "memory": "config.hardware.memoryMB",
    "processors": "config.hardware.numCPU",
    "option": 'config.extraConfig["pciPassthru.use64bitMMIO"]',
    "reservation": "config.memoryReservationLockedToMax",
    "property": "config.vAppConfig.property",
    "mark": 'config.extraConfig["bfinfra.mark"]',
}
"""What a vCenter names when it tells of each."""


def changes(server: Vcsim) -> list[tuple[str, Callable[[Any, bool], None]]]:
    """Each makes drift of a machine, or with True takes it back."""

    def govc(*words: str) -> None:
        subprocess.run([vcsims.binary("govc"), *words], env=server.govc, check=True, capture_output=True)

    def options(value: str) -> Any:
        key = "pciPassthru.use64bitMMIO"
        return spec(extraConfig=[vim.option.OptionValue(key=key, value=value)])

    def power(vm: Any, back: bool) -> None:
        govc("vm.power", "-on" if back else "-off", vm.name)

    def memory(vm: Any, back: bool) -> None:
        was = vm.config.hardware.memoryMB
        govc("vm.change", "-vm", vm.name, "-m", str(was // 2 if back else was * 2))

    def processors(vm: Any, back: bool) -> None:
        was = vm.config.hardware.numCPU
        settled(vm.ReconfigVM_Task(spec(numCPUs=was // 2 if back else was * 2)))

    def option(vm: Any, back: bool) -> None:
        settled(vm.ReconfigVM_Task(options("TRUE" if back else "FALSE")))

    every = (power, memory, processors, option, reservation, property_, mark)
    return [(each.__name__.rstrip("_"), each) for each in every]


@contextlib.contextmanager
def session(server: Vcsim) -> Iterator[Any]:
    host, _, port = server.direct.rpartition(":")
    made = SmartConnect(
        host=host, port=int(port), user=vcsims.USER, pwd=vcsims.PASSWORD, disableSslCertValidation=True
    )
    try:
        yield made
    finally:
        Disconnect(made)


def of_vcsim(servers: int, many: int, rest: float, *, at_once: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            vcsims.fleet_of(servers, folder) as direct,
            told.telling(direct, folder) if at_once else contextlib.nullcontext((direct, None)) as (
                front,
                relay,
            ),
            vcsims.delayed(front, 0) as (server, delay),
            vcsims.delayed(direct, 0) as (again, other),
        ):
            shutil.copytree(folder / "site", folder / "again")
            server.lead(folder / "site")
            again.lead(folder / "again")
            began = time.monotonic()
            with watching(folder / "site", folder / "state") as watch:
                watch.first()
                print(f"{servers} servers: first report after {time.monotonic() - began:.1f} s", flush=True)
                with Drifts(folder / "again", other) as drifts:
                    at_rest(watch, rest, delay)
                drifts.show()
                if many:
                    with Answers(lambda: delay.counts()["down"]) as answers:
                        measured(watch, direct, many, answers, relay)
                    at_rest(watch, min(rest, 60), delay)


def measured(watch: Watch, server: Vcsim, many: int, answers: Answers, relay: told.Relay | None) -> None:
    made = changes(server)
    times = {name: Times() for name, _ in made}
    with session(server) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.VirtualMachine], True)
        machines = view.view
        for n in range(many // 2):
            name, change = made[n % len(made)]
            vm = machines[n * 7919 % len(machines)]
            address = f"bitfusion_server/{vm.name}"
            for back in (False, True):
                change(vm, back)
                if relay:
                    relay.tell(refs.moid(vm), PATHS[name], MARKS.get(vm.name, "") if back else "")
                done = time.monotonic()
                known = watch.until(address, drifted=not back)
                times[name].ours.append(max(0.0, known - done))
                times[name].others.append(max(0.0, answers.before(known) - done))
    table(times, "answer")


def table(times: dict[str, Times], beside: str) -> None:
    print(f"{'':<34}{'times':>6}{'p50':>8}{'p95':>8}{'max':>8}   {beside:>8}{'p95':>8}{'max':>8}")
    for name, each in times.items():
        print(each.line(name))
    whole = Times(
        [t for each in times.values() for t in each.ours], [t for each in times.values() for t in each.others]
    )
    print(whole.line("all"), flush=True)


def at_rest(watch: Watch, seconds: float, delay: vcsims.Delay) -> None:
    """What the watch costs while nothing changes."""
    (before, _), sent = watch.cost(), delay.counts()
    began = time.monotonic()
    time.sleep(seconds)
    (after, memory), took = watch.cost(), time.monotonic() - began
    threads = len([*Path(f"/proc/{watch.process.pid}/task").iterdir()])
    print(
        f"at rest for {took:.0f} s: {cost(after - before, memory, took)}, "
        f"{passed(sent, delay.counts(), took)}; {threads} threads; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def cost(busy: float, memory: int, took: float) -> str:
    return f"{100 * busy / took:.2f} % of a processor, {memory} MiB"


def passed(before: dict[str, int], after: dict[str, int], took: float) -> str:
    grown = {each: (after[each] - before[each]) * 60 / took for each in after}
    return f"a minute: {(grown['up'] + grown['down']) / 1024:.1f} KiB, {grown['turns']:.1f} round trips"


class Drifts(Beside):
    """`bfinfra drift` once a minute, from a minute after its start on, by a way of its own."""

    def __init__(self, site: Path, delay: vcsims.Delay) -> None:
        super().__init__(self.run)
        self.site, self.delay = site, delay
        self.times: list[float] = []
        self.busy, self.memory, self.took = 0.0, 0, 0.0
        self.sent = self.last = delay.counts()

    def run(self) -> None:
        began = time.monotonic()
        while not self.over.wait(max(0.0, began + 60 * (len(self.times) + 1) - time.monotonic())):
            started = time.monotonic()
            words = [sys.executable, "-m", "bfinfra", "drift", str(self.site)]
            env = {**os.environ, "BFINFRA_STATE_HOME": str(self.site.with_name("drifts"))}
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=env, cwd=ROOT)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode in (0, 2), process.returncode
            self.times.append(time.monotonic() - started)
            self.busy += used.ru_utime + used.ru_stime
            self.memory = max(self.memory, used.ru_maxrss >> 10)
            self.last = self.delay.counts()

    def show(self) -> None:
        took = 60.0 * len(self.times)
        if took:
            print(
                f"drift once a minute, {len(self.times)} times: {figure(self.times, 50).strip()} each, "
                f"{cost(self.busy, self.memory, took)}, {passed(self.sent, self.last, took)}",
                flush=True,
            )


def of_cluster(many: int, rest: float) -> None:
    """20 objects on kube-apiserver."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = os.urandom(3).hex()
        space = f"bench-{own}"
        account = {
            "server": "registry.example.com",
            "username": "team-a",
            "password": {"file": "registry.password"},
        }
        here = {"cluster": "here"}
        spaces = {f"{space}-{n}": {**here, "labels": {"team": "a"}} for n in range(10)}
        pulls = {f"pull-{n}": {**here, "namespaces": [f"{space}-{n}"], **account} for n in range(10)}
        site = {
            "site": space,
            "kubernetes_cluster": {"here": {"kubeconfig": {"file": "admin.kubeconfig"}}},
            "namespace": spaces,
            "registry_credential": pulls,
        }
        for each in ("site", "again"):
            (folder / each).mkdir()
            (folder / each / "registry.password").write_text("hidden-4711")
            (folder / each / "site.yaml").write_text(json.dumps(site))
        direct = kubernetes.admin()
        address = direct["clusters"][0]["cluster"]["server"].removeprefix("https://")
        with contextlib.ExitStack() as stack:
            ways = [stack.enter_context(vcsims.path_to(address)) for _ in range(3)]
            for each, way in zip(("site/", "again/", ""), ways, strict=True):
                direct["clusters"][0]["cluster"]["server"] = f"https://{way.address}"
                (folder / f"{each}admin.kubeconfig").write_text(json.dumps(direct))
            followed_in(folder, space, many, rest, ways)


def followed_in(folder: Path, space: str, many: int, rest: float, ways: list[vcsims.Delay]) -> None:
    bfinfra_ = [sys.executable, "-m", "bfinfra"]
    env = {**os.environ, "BFINFRA_STATE_HOME": str(folder / "state")}
    where = [str(folder / "site"), "--yes"]
    subprocess.run([*bfinfra_, "apply", *where], check=True, env=env, stdout=subprocess.DEVNULL)
    try:
        with watching(folder / "site", folder / "state") as watch:
            watch.first()
            with (
                Drifts(folder / "again", ways[1]) as drifts,
                Kubectl(folder / "admin.kubeconfig", ways[2]) as others,
            ):
                at_rest(watch, rest, ways[0])
            drifts.show()
            others.show()
            if many:
                in_cluster(watch, str(folder / "admin.kubeconfig"), space, many)
    finally:
        subprocess.run([*bfinfra_, "destroy", *where], check=False, env=env, stdout=subprocess.DEVNULL)


class Kubectl:
    """`kubectl get --watch` of the two types of objects that the site has, at rest."""

    def __init__(self, kubeconfig: Path, delay: vcsims.Delay) -> None:
        words = [vcsims.binary("kubectl"), f"--kubeconfig={kubeconfig}", "get"]
        tail = ["--watch", "--output=name", "--selector=bfinfra.io/site"]
        each = (["namespaces"], ["secrets", "--all-namespaces"])
        self.processes = [
            subprocess.Popen([*words, *what, *tail], stdout=subprocess.DEVNULL, text=True) for what in each
        ]
        self.delay = delay

    def __enter__(self) -> Self:
        time.sleep(5)  # until they follow
        self.sent, self.began, self.before = self.delay.counts(), time.monotonic(), self._used()
        return self

    def __exit__(self, *_: object) -> None:
        took = time.monotonic() - self.began
        busy, memory = (now - before for now, before in zip(self._used(), (self.before[0], 0), strict=True))
        self.text = f"{cost(busy, int(memory), took)}, {passed(self.sent, self.delay.counts(), took)}"
        for each in self.processes:
            each.terminate()
            each.wait()

    def _used(self) -> tuple[float, float]:
        each = [Watch(process).cost() for process in self.processes]
        return sum(busy for busy, _ in each), sum(memory for _, memory in each)

    def show(self) -> None:
        print(f"kubectl get --watch, two of them: {self.text}", flush=True)


def in_cluster(watch: Watch, kubeconfig: str, space: str, many: int) -> None:
    times = {"label of a namespace (kubectl)": Times(), "data of a Secret (kubectl)": Times()}
    others = {"namespaces": Follower(), "secrets": Follower()}
    for resource_, each in others.items():
        scope = "--all-namespaces" if resource_ == "secrets" else ""
        threading.Thread(target=each.kubectl, args=(kubeconfig, resource_, scope), daemon=True).start()

    def kubectl(*words: str) -> str:
        command = [vcsims.binary("kubectl"), f"--kubeconfig={kubeconfig}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    time.sleep(2)
    for n in range(many // 2):
        own = f"{space}-{n % 10}"
        (secret,) = (
            each for each in kubectl("get", "secrets", "-n", own, "-o", "name").split() if "pull" in each
        )
        before = kubectl("get", secret, "-n", own, "-o", r"jsonpath={.data.\.dockerconfigjson}")
        for back in (False, True):
            name, (address, heard) = (
                list(times)[n % 2],
                (
                    (f"namespace/{own}", (others["namespaces"], f"namespace/{own}"))
                    if n % 2 == 0
                    else (f"registry_credential/pull-{n % 10}", (others["secrets"], secret))
                ),
            )
            asked = time.monotonic()
            if n % 2 == 0:
                kubectl("label", "namespace", own, f"team={'a' if back else 'b'}", "--overwrite")
            else:
                data = before if back else "eyJhdXRocyI6e319"
                body = json.dumps({"data": {".dockerconfigjson": data}})
                kubectl("patch", secret, "-n", own, "--type=merge", "-p", body)
            done = time.monotonic()
            times[name].ours.append(max(0.0, watch.until(address, drifted=not back) - done))
            follower, what = heard
            limit = time.monotonic() + 10
            while follower.heard.get(what, 0.0) < asked and time.monotonic() < limit:
                time.sleep(0.005)
            times[name].others.append(max(0.0, follower.heard[what] - done))
    for each in others.values():
        each.over = True
    table(times, "kubectl")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", nargs="*", type=int, default=None)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--rest", type=float, default=60)
    parser.add_argument("--told", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--only-cluster", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it started ends with it
    print(
        f"bfinfra {version('bfinfra')}, Python {platform.python_version()}; {vcsims.GOVMOMI}; "
        f"{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )
    for each in args.servers or ([] if args.only_cluster else [10, 300]):
        of_vcsim(each, args.changes, args.rest, at_once=args.told)
    if args.cluster or args.only_cluster:
        of_cluster(args.changes, args.rest)


if __name__ == "__main__":
    main()
