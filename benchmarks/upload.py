"""How long an OVA takes into vcsim, beside govc: .venv/bin/python benchmarks/upload.py [MIB ...]   (512 and
2048 where none is given)

Both are whole processes, from their start to the imported VM, interleaved; bytecode is there, as after an
installation. bfinfra's (uploading.py) runs the call that a bitfusion_server's deployment runs
(VCenter.imports.run), and before it, where it says so, the check of every digest that such a deployment never
leaves out. govc checks digests with -m only, and by what the server answers, which vcsim does for SHA-1 only:
sha256sum before it stands in. Processor seconds are the client's own (and sha256sum's): other work on the
machine does not touch them. "transfer" is the upload alone, from the head of the request to its last byte, as
vcsim sees it. vcsim takes the SHA-1 of what is uploaded and throws it away: no disk is in the way. The
binaries are those of `script/peers build`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import given
import vcsims
from vcsims import Vcsim

from bfinfra.backends import tls
from bfinfra.sandbox.factories.descriptor import Appliance, Disk, descriptor
from bfinfra.sandbox.factories.ova import member
from bfinfra.sandbox.factories.vmdk import make_vmdk

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20
ROUNDS = 3
WORLD = ["-shim", "-cluster", "1", "-host", "1", "-standalone-host", "0", "-vm", "0", "-gpus", "2"]
PLACES = {
    "host": "/DC0/host/DC0_C0/DC0_C0_H0",
    "pool": "/DC0/host/DC0_C0/Resources",
    "folder": "/DC0/vm",
    "datastore": "/DC0/datastore/LocalDS_0",
    "network": "/DC0/network/VM Network",
}
WAYS = {
    "bfinfra": (),
    "govc": (),
    "bfinfra, digests checked": ("verify",),
    "sha256sum, then govc": ("sha256sum",),
}


class Pattern:
    """A file of one block over and over, after a beginning of its own; its digest costs one pass."""

    def __init__(self, head: bytes, size: int) -> None:
        self._left, self._next, self._block = size, head, os.urandom(MIB)

    def read(self, count: int) -> bytes:
        found = self._next[: min(count, self._left)]
        self._next = self._next[len(found) :] or self._block
        self._left -= len(found)
        return found


def make(path: Path, size: int, disks: int = 1) -> None:
    """An OVA whose disks have `size` bytes together: each the head of a real VMDK, then noise, which nobody
    on the way reads.
    """
    name, each = path.stem, size // disks
    names = [f"{name}-disk{n}.vmdk" for n in range(1, disks + 1)]
    text = descriptor(
        Appliance(
            name,
            "VMware vSphere Bitfusion Server",
            "3.0.0-11",
            tuple(Disk(disk, each, 50 << 30) for disk in names),
            ("Network 1",),
        )
    ).encode()
    body = path.with_suffix(".vmdk")
    whole, pattern = hashlib.sha256(), Pattern(make_vmdk(50 << 30, MIB, name), each)
    with body.open("wb") as out:
        while block := pattern.read(MIB):
            whole.update(block)
            out.write(block)
    digests = {f"{name}.ovf": hashlib.sha256(text).hexdigest(), **dict.fromkeys(names, whole.hexdigest())}
    manifest = "".join(f"SHA256({file})= {digest}\n" for file, digest in digests.items()).encode()
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar, body.open("rb") as data:
        for title, small in ((f"{name}.ovf", text), (f"{name}.mf", manifest)):
            tar.addfile(member(title, len(small)), io.BytesIO(small))
        for disk in names:
            data.seek(0)
            tar.addfile(member(disk, each), data)
    body.unlink()


def govc(server: Vcsim, *words: str) -> str:
    command = [vcsims.binary("govc"), *words]
    return subprocess.run(
        command,
        env={**os.environ, **server.govc},
        check=True,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ).stdout


def by_govc(server: Vcsim, path: Path, name: str) -> None:
    govc(
        server,
        "import.ova",
        "-name",
        name,
        "-ds",
        "LocalDS_0",
        "-pool",
        PLACES["pool"],
        "-host",
        PLACES["host"],
        "-folder",
        PLACES["folder"],
        "-net",
        "VM Network",
        str(path),
    )


def task_of(server: Vcsim, path: Path) -> dict[str, Any]:
    """The arguments of uploading.py, without the VM's name."""
    places = {
        what: govc(server, "find", "-i", "-maxdepth", "0", where).strip().partition(":")[2]
        for what, where in PLACES.items()
    }
    return {"file": str(path), "server": server.address, "pin": server.pin, "places": places}


def by_bfinfra(task: dict[str, Any], name: str, *, verify: bool = False) -> float:
    """The child's peak of resident memory in MiB."""
    left = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env = {
        **left,
        "PYTHONPYCACHEPREFIX": str(Path(task["file"]).parent / "bytecode"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        "BENCHMARK_PASSWORD": vcsims.PASSWORD,
    }
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "benchmarks/uploading.py"),
            json.dumps({**task, "name": name, "verify": verify}),
        ],
        env=env,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(done.stdout)


def transferred(server: Vcsim) -> float:
    """Seconds of all uploads since the last call, as vcsim took them."""
    with urllib.request.urlopen(f"https://{server.address}/_ctl/uploads", context=tls.unverified()) as answer:
        return sum(json.load(answer) or ())


class Run(NamedTuple):
    """Seconds, those of the transfer alone, processor seconds of the client, MiB at the peak (of bfinfra
    only).
    """

    way: str
    seconds: float
    transfer: float
    cpu: float
    peak: float


def measured(server: Vcsim, path: Path, size: int) -> Iterator[Run]:
    """Round by round, the first of which only warms up; the VM goes after each."""
    task = task_of(server, path)
    for number in range(1 + ROUNDS):
        for way, words in WAYS.items():
            name, peak = f"vm-{size}-{number}", 0.0
            before, began = os.times(), time.perf_counter()
            if words == ("sha256sum",):
                subprocess.run(["sha256sum", str(path)], check=True, stdout=subprocess.DEVNULL)
            if way.endswith("govc"):
                by_govc(server, path, name)
            else:
                peak = by_bfinfra(task, name, verify="verify" in words)
            seconds, after = time.perf_counter() - began, os.times()
            transfer = transferred(server)
            assert json.loads(govc(server, "vm.info", "-json", name))["virtualMachines"], f"{way}: no VM"
            govc(server, "vm.destroy", name)
            if number:
                cpu = (
                    after.children_user
                    - before.children_user
                    + after.children_system
                    - before.children_system
                )
                yield Run(way, seconds, transfer, cpu, peak)


def table(size: int, rows: list[Run]) -> None:
    of = {way: [row for row in rows if row.way == way] for way in WAYS}
    whole, alone, cpus = (
        {way: statistics.median(getattr(row, what) for row in found) for way, found in of.items()}
        for what in ("seconds", "transfer", "cpu")
    )
    for way, found in of.items():
        peer = "govc" if way == "bfinfra" else "sha256sum, then govc"
        ratios = "".join(f"{those[way] / those[peer]:>11.2f}×" for those in (whole, alone, cpus))
        rest = f"{ratios}{max(row.peak for row in found):>8.0f} MiB" if way.startswith("bfinfra") else ""
        print(
            f"{size:>6} MiB  {way:<26}{whole[way]:>7.2f} s{min(row.seconds for row in found):>8.2f} "
            f"s{size * MIB / alone[way] / 1e6:>9.0f} MB/s{cpus[way]:>9.2f} s{rest}"
        )


def main() -> None:
    sizes = given.numbers(__doc__, mib=(512, 2048)).mib
    libraries = ", ".join(f"{name} {version(name)}" for name in ("pyVmomi", "httpx2"))
    with tempfile.TemporaryDirectory() as name, vcsims.vcsim(*WORLD, folder=Path(name)) as server:
        print(
            f"bfinfra {version('bfinfra')}, Python {platform.python_version()}, {libraries}; govc and "
            f"vcsim of {vcsims.GOVMOMI}; {platform.machine()}, {os.cpu_count()} processors; {ROUNDS} "
            "rounds"
        )
        print(
            f"{'file':>10}  {'':<26}{'median':>9}{'fastest':>10}{'transfer':>14}{'processor':>11}"
            f"{'of govc':>12}{'transfer':>12}{'processor':>12}{'peak':>12}"
        )
        for size in sizes:
            path = Path(name) / f"of-{size}.ova"
            make(path, size * MIB)
            table(size, list(measured(server, path, size)))
            path.unlink()


if __name__ == "__main__":
    main()
