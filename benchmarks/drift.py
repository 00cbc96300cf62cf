"""How long `bfinfra drift` takes, beside govc, Ansible and a bare read: .venv/bin/python benchmarks/drift.py
[SERVERS ...]   (10, 300, 1000, 10000 where none is given)

One vcsim for each number of servers (10,000 take it minutes to start); with 0 ms and with 20 ms of round trip
in the path (delay.py); whole processes, interleaved; bytecode is there, as after an installation. Round trips
are counted by the path: every time a client speaks after its server has, and every new connection. What is
compared:

- bfinfra drift: Bitfusion servers and their hosts: GPUs, marks, sizes, properties, networks, power state;
  read, compared with the site, and printed.
- its survey alone: seconds from the first byte asked until all states are there, within such a process
  (within.py); its other columns are the whole process's.
- bare read: the same properties, each once, by http.client and lxml (bare.py); nothing is made of them.
- govc: `object.collect` of the VMs' name, power state, devices and mark, as JSON; hosts are not read, nothing
  is compared.
- Ansible: community.vmware's vmware_vm_info: name, power state, address of each VM; no GPUs, no marks,
  nothing is compared. Up to 300 servers only,
  as it reads several times for each. Where no `ansible` is on the PATH, or BFINFRA_ANSIBLE_PYTHON (a Python
  with pyvmomi and requests) is not
  set, its rows are left out, which the head says.

The binaries are those of `script/peers build`.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import given
import startup
import vcsims
from vcsims import Delay, Vcsim

from bfinfra.backends.vcenter import hosts, inventory, machines
from bfinfra.kinds.vcenter.bitfusion_server.state import KEYS, MARK

ROOT = Path(__file__).resolve().parents[1]
SIZES, TRIPS = (10, 300, 1000, 10000), (0, 20)  # servers, milliseconds
MOST_FOR_ANSIBLE = 300
LONGEST = 600  # seconds of one process
BARE, OURS, WITHIN = "bare read", "bfinfra drift", "its survey alone"
GOVC = [
    "object.collect",
    "-json",
    "-type",
    "m",
    "/",
    "name",
    "runtime.powerState",
    "config.hardware.device",
    f'config.extraConfig["{MARK}"]',
]
ANSIBLE, PYTHON = shutil.which("ansible"), os.environ.get("BFINFRA_ANSIBLE_PYTHON")


@dataclass
class Runs:
    """What was measured of one client at one distance: seconds, processor seconds, MiB at the peak, round
    trips.
    """

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    memory: float = 0.0
    trips: int = 0


def asked() -> str:
    """What bfinfra reads, for the bare read: type → paths."""
    paths = {kind.__name__.rpartition(".")[2]: list(those) for kind, those in inventory.PATHS.items()}
    paths["HostSystem"] = list(dict.fromkeys([*paths["HostSystem"], *hosts.DETAIL]))
    paths["VirtualMachine"] = [*machines.DETAIL, *(f'config.extraConfig["{key}"]' for key in KEYS)]
    return json.dumps(paths)


def commands(server: Vcsim, folder: Path, servers: int) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Client → its command and what its environment has besides."""
    host, _, port = server.address.rpartition(":")
    found = {
        OURS: ([sys.executable, "-m", "bfinfra", "drift", str(folder / "site")], {}),
        WITHIN: ([sys.executable, str(ROOT / "benchmarks/within.py"), str(folder / "site")], {}),
        BARE: (
            [sys.executable, str(ROOT / "benchmarks/bare.py"), server.address, vcsims.USER, vcsims.PASSWORD],
            {},
        ),
        "govc object.collect": ([vcsims.binary("govc"), *GOVC], server.govc),
    }
    if ANSIBLE and PYTHON and servers <= MOST_FOR_ANSIBLE:
        module = (
            f"hostname={host} port={port} username={vcsims.USER} password={vcsims.PASSWORD} "
            "validate_certs=false"
        )
        found["Ansible vmware_vm_info"] = (
            [
                ANSIBLE,
                "localhost",
                "-i",
                "localhost,",
                "-c",
                "local",
                "-e",
                f"ansible_python_interpreter={PYTHON}",
                "-m",
                "community.vmware.vmware_vm_info",
                "-a",
                module,
            ],
            {},
        )
    return found


def once(name: str, command: Sequence[str], env: dict[str, str], found: Runs, path: Delay | None) -> None:
    """One whole process; it must succeed. What measures itself says its seconds."""
    before = path.counts() if path else {}
    with tempfile.NamedTemporaryFile("r") as used:
        launched = [sys.executable, "-S", str(ROOT / "benchmarks/once.py"), used.name, *command]
        try:
            done = subprocess.run(
                launched,
                env=env,
                cwd=ROOT,
                input=asked(),
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            raise SystemExit(
                f"{name} did not end within {LONGEST} s: the machine does something else"
            ) from None
        if done.returncode:
            raise SystemExit(f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}")
        numbers = json.load(used)
    found.seconds.append(float(done.stdout) if name == WITHIN else numbers["seconds"])
    found.processor.append(numbers["processor"])
    found.memory = max(found.memory, numbers["memory"])
    if path:
        after = path.counts()
        found.trips = sum(after[name] - before[name] for name in ("connections", "turns"))


def measured(
    server: Vcsim, folder: Path, servers: int, path: Delay | None, env: dict[str, str]
) -> dict[str, Runs]:
    """Interleaved rounds: as many as last a minute or so; of the largest fleet three."""
    server.lead(folder / "site")
    found: dict[str, Runs] = {}
    for each in range(1 + (9 if servers <= 10 else 5 if servers <= 1000 else 3)):
        for name, (command, extra) in commands(server, folder, servers).items():
            runs = (
                Runs() if each == 0 else found.setdefault(name, Runs())
            )  # the first round writes bytecode and fills caches
            if each or servers <= 1000:
                once(name, command, env | extra, runs, path)
    return found


def show(servers: int, trip: int, found: dict[str, Runs]) -> None:
    bare = found[BARE]
    for name, runs in found.items():
        middle, fastest = statistics.median(runs.seconds), min(runs.seconds)
        ratio = f"{middle / statistics.median(bare.seconds):>7.2f}×{fastest / min(bare.seconds):>7.2f}×"
        each = 1000 * statistics.median(runs.processor) / servers
        trips = str(runs.trips) if trip else ""
        print(
            (
                f"{servers:>6} {trip:>3} ms  {name:<24}{middle:>8.2f} s{fastest:>8.2f} s{ratio}{trips:>8}"
                f"{each:>11.2f} ms{runs.memory:>7.0f} MiB"
            ),
            flush=True,
        )


def main(sizes: Sequence[int]) -> None:
    ansible = (
        subprocess.run(
            [ANSIBLE, "--version"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[0]
        if ANSIBLE and PYTHON
        else "no Ansible"
    )
    print(
        f"bfinfra {version('bfinfra')}, Python {platform.python_version()}, pyVmomi {version('pyvmomi')}"
        f", lxml {version('lxml')}; "
        f"{vcsims.GOVMOMI}; {ansible}; {platform.machine()}, {os.cpu_count()} processors"
    )
    print(
        f"{'servers':<15}{'':<24}{'median':>8}{'fastest':>11}{'of the bare read':>16}{'trips':>9}"
        f"{'CPU/server':>14}{'peak':>11}"
    )
    with tempfile.TemporaryDirectory() as name:
        env = startup.environment(Path(name) / "bytecode")
        for servers in sizes:
            folder = Path(name) / str(servers)
            with vcsims.fleet_of(servers, folder) as server:
                for trip in TRIPS:
                    if not trip:
                        show(servers, trip, measured(server, folder, servers, None, env))
                        continue
                    with vcsims.delayed(server, trip) as (further, path):
                        show(servers, trip, measured(further, folder, servers, path, env))


if __name__ == "__main__":
    main(given.numbers(__doc__, servers=SIZES).servers)
