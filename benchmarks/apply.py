"""How long `apply` of many servers takes where vCenter's tasks take a second each: .venv/bin/python
benchmarks/apply.py [SERVERS [PARALLELISM]]   (100, 10)

From nothing to servers that are ready, onto a vcsim of the benchmark's own, from a small OVA; each server is
imported, powered on and marked. The critical path is what nobody could go below with so many at a time: the
delayed tasks that the run itself sent, counted as they leave, times their second, over the parallelism
(rounded up to whole tasks of the busiest). vcsim has no guests, so that a server is ready when its port takes
connections: all their addresses lie on loopback, where one listener answers for all. The survey before the
first write is left out of both; what else stands between the two is the engine, its looks before each step,
and vcsim itself.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import fleet
import given
import httpx2
import vcsims

import bfinfra
from bfinfra.backends import writes
from bfinfra.engine.apply import Options
from bfinfra.sandbox.factories.ova import make_ova

DELAY = 1000  # milliseconds
DELAYED = {
    "ReconfigVM_Task": "ReconfigVm",
    "PowerOnVM_Task": "PowerOn",
}  # request → what vcsim calls its task
GOAL = 1.1


class Counting(httpx2.BaseTransport):
    """Counts what is sent, by name."""

    def __init__(self, inner: httpx2.BaseTransport, names: Counter[str]) -> None:
        self._inner, self._names = inner, names

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._names[writes.name(request)] += 1
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


@contextmanager
def answering() -> Iterator[int]:
    """A port on every loopback address that takes connections; nobody needs to accept them."""
    with socket.create_server(("", 0), backlog=4096) as listener:
        yield int(listener.getsockname()[1])


def write(site: Path, servers: int, port: int) -> None:
    """fleet's site, its servers ready by their port."""
    site.mkdir()
    make_ova(site / "bitfusion-server.ova", disk=1 << 16)
    (site / "vcsim.password").write_text(vcsims.PASSWORD)
    (site / "customer.password").write_text("of-the-customer-1!")
    for name, text in fleet.site_files(servers).items():
        there = re.sub(r"(address|gateway): 10\.", r"\1: 127.", text)
        there = re.sub(r"      vcenter_(url|guid|thumbprint): .*\n", "", there)  # bfinfra fills them in
        (site / name).write_text(
            re.sub(r"    gpus: 1\n", f"    gpus: 1\n    readiness: port\n    port: {port}\n", there)
        )


def main(servers: int, parallelism: int) -> None:
    shape = [*fleet.vcsim_words(servers), "-shim"]
    delays = [
        "-task-delay",
        ",".join(["LockHandoff:0", *(f"{name}:{DELAY}" for name in DELAYED.values())]),
    ]  # a VM can be read while its task waits
    names: Counter[str] = Counter()
    began: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        answering() as port,
        vcsims.vcsim(*shape, *delays) as server,
    ):
        os.environ["BFINFRA_STATE_HOME"] = str(Path(folder) / "home")
        write(Path(folder) / "site", servers, port)
        server.lead(Path(folder) / "site")

        def approve(_: bfinfra.Plan) -> bfinfra.Allow:
            names.clear()
            began.append(time.perf_counter())
            return bfinfra.Allow(every_disruption=True)

        outcome = bfinfra.apply(
            bfinfra.load(Path(folder) / "site"),
            approve=approve,
            options=Options(parallelism=parallelism),
            context=bfinfra.RunContext(middleware=(lambda inner: Counting(inner, names),)),
        )
        wall, used = time.perf_counter() - began[0], time.process_time()
    assert outcome.ending == "done", [str(each.problem) for each in outcome.endings.values() if each.problem][
        :3
    ]
    tasks = sum(names[name] for name in DELAYED)
    path = -(-tasks // parallelism) * DELAY / 1000
    print(
        f"bfinfra {version('bfinfra')}, Python {platform.python_version()}; {platform.machine()}, "
        f"{os.cpu_count()} processors"
    )
    print(
        f"{servers} servers, {parallelism} at a time: {wall:.1f} s; {tasks} tasks of {DELAY / 1000:.0f} "
        f"s are a critical path of {path:.1f} s: "
        f"{wall / path:.2f}× (goal {GOAL}×{'' if wall <= GOAL * path else ', missed'}); "
        f"{sum(names.values())} requests, processor {used:.1f} s"
    )


if __name__ == "__main__":
    main(**vars(given.numbers(__doc__, servers=100, parallelism=10)))
