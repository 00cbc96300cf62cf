"""Two runs of one site at once, from two machines, restart hosts one after the other and overwrite nothing.

Twelve hosts whose cards take effect with a restart, twelve machines whose sizes change, and an apply beside a
destroy: two processes with two state folders, each with lags of its own before every request. Both must end
well (beside a destroy, the apply after them), the next plan must be empty, no host may be left in maintenance
mode, and no lease and no note of something begun may be left. A run is also killed before and after each call
with which it takes, signs, renews and gives back its lease, and with which it restarts a host; the next apply,
from another machine, which can't see that the first one is dead, must end well. All runs on the sandbox, and on
vcsim behind a proxy that enforces the versions of machines, which vcsim counts and does not enforce. A lease
counts as abandoned after 3 s instead of 180.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grown
import yaml
from kinds.lifecycle import QUICK
from peers.found import Peers
from peers.own_vcsim import started
from torture.counting import Count, Effort
from torture.side_by_side import CALLS, KILLED, Start, ended_well, over, together
from torture.versioning import Versioning, versioning

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, attributes
from bfinfra.backends.vcenter.leases import PREFIX
from bfinfra.kinds.vcenter.gpu_host.state import BEGUN
from bfinfra.sandbox import Running, start, stop

MANY, LAG, APART, PACE = 12, 0.06, 0.3, 0.02
HOSTS, MACHINES, BESIDE = 100, 100, 50
SIZES = ("24GiB", "28GiB", "32GiB")
AFRESH = 10  # rounds of machines after which they are made anew
TEMPLATE = "golden"
MACHINES_OF_RUNS = ("a", "b")
"""Where the two runs are: their state folders."""


class OnSandbox:
    """A sandbox with as many hosts."""

    name = "the sandbox"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        state = folder / "sandbox"
        self.sandbox: Running | None = start(grown.world(folder, MANY), state, pace=PACE)
        stack.callback(stop, state)

    def fresh(self) -> None:
        assert self.sandbox is not None
        self.sandbox.reset()

    def hosts(self) -> Path:
        given = yaml.safe_load(grown.servers(self.folder, MANY).read_text())
        del given["bitfusion_server"]
        return _written(self.folder / "hosts.yaml", given)

    def machines(self, sizes: list[str]) -> Path:
        given = yaml.safe_load(grown.servers(self.folder, MANY).read_text())
        for size, server in zip(sizes, given["bitfusion_server"].values(), strict=True):
            server["memory"] = size
        return _written(self.folder / "machines.yaml", given)

    def figures(self) -> Mapping[str, float]:
        return {}


class OnVcsim:
    """A vcsim of its own, behind the proxy."""

    name = "vcsim"
    sandbox: Running | None = None

    def __init__(self, folder: Path, stack: ExitStack, peers: Peers) -> None:
        self.folder, self._peers, self._stack = folder, peers, ExitStack()
        self._proxy: Versioning = stack.enter_context(versioning(folder))
        stack.push(self._stack)
        (folder / "vcsim.password").write_text(peers.password)
        pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(self._proxy.certificate.read_text())).hexdigest()
        self._vcenter = {
            "server": self._proxy.address,
            "username": "administrator@vsphere.local",
            "password": {"file": "vcsim.password"},
            "trust": {"sha256": pin},
        }

    def fresh(self) -> None:
        self._proxy.leave()
        self._stack.close()
        for machine in MACHINES_OF_RUNS:  # another vCenter at the same address: nothing is known of it
            shutil.rmtree(self.folder / machine, ignore_errors=True)
        found = self._stack.enter_context(started(self._peers, "-cluster", "1", "-host", str(MANY)))
        self._proxy.stand_before(found)
        place = ("-host", "DC0_C0_H0", "-ds", "LocalDS_0", "-net", "VM Network", "-g", "centos7_64Guest")
        found.govc("vm.create", "-on=false", *place, TEMPLATE)
        found.govc("vm.markastemplate", TEMPLATE)

    def hosts(self) -> Path:
        cards = {"passthrough": [{"vendor": "0x10de", "device": "0x1db6"}], "reboot": "if_needed"}
        hosts = {f"DC0_C0_H{n}": {"cluster": "DC0_C0", **cards} for n in range(MANY)}
        return self._site("hosts", gpu_host=hosts)

    def machines(self, sizes: list[str]) -> Path:
        place = {"template": TEMPLATE, "cluster": "DC0_C0", "datastore": "LocalDS_0", "power": "off"}
        size = {"cpus": 2, "adapters": [{"network": "VM Network"}]}
        made = {f"worker-{n}": {**place, **size, "memory": each} for n, each in enumerate(sizes)}
        return self._site("machines", virtual_machine=made)

    def figures(self) -> Mapping[str, float]:
        """Stale writes that were refused, once."""
        refused, self._proxy.refused = self._proxy.refused, 0
        return {"stale writes refused": refused}

    def _site(self, name: str, **kinds: Any) -> Path:
        given = {"site": "two", "vcenter": self._vcenter, **kinds}
        return _written(self.folder / f"{name}.yaml", given)


Stage = OnSandbox | OnVcsim


def _written(path: Path, given: object) -> Path:
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    return path


def counts(effort: Effort) -> Iterator[Count]:
    makers: list[Callable[[Path, ExitStack], Stage]] = [OnSandbox]
    if (peers := effort.peers) is not None:
        makers.append(lambda folder, stack: OnVcsim(folder, stack, peers))
    for number, make in enumerate(makers):
        folder = effort.folder / f"stage-{number}"
        folder.mkdir()
        with ExitStack() as stack:
            yield from _on(make(folder, stack), effort)


def _on(stage: Stage, effort: Effort) -> Iterator[Count]:
    for what, rounds, share, tried in (
        (f"{MANY} hosts restart", HOSTS, 2, hosts),
        (f"{MANY} machines change", MACHINES, 3, machines),
        ("an apply beside a destroy", BESIDE, 1, beside),
    ):
        count = Count(f"{what}, two runs at once, on {stage.name}")
        for number in range(effort.number(rounds, share)) if effort.wants(count.what) else ():
            with count.trial(f"round {number}"):
                tried(stage, number, effort, count)
        if count.tried:
            yield count
    kill = Count(f"one of two is killed at a call of its lease, on {stage.name}")
    strikes = [
        (call, when, alone) for call in CALLS for when in ("before", "after") for alone in (True, False)
    ]
    for call, when, alone in effort.some(strikes, 4) if effort.wants(kill.what) else ():
        with kill.trial(f"{when} {call}, {'alone' if alone else 'beside another'}"):
            killed(stage, (call, when), effort, kill, alone=alone)
    if kill.tried:
        yield kill


def _starts(stage: Stage, site: Path, chance: Any, **more: Any) -> tuple[Start, Start]:
    """One from each machine."""
    one, other = (
        Start(site, stage.folder / machine, stage.sandbox, seed=str(chance.random()), lag=LAG)
        for machine in MACHINES_OF_RUNS
    )
    return one, Start(**{**vars(other), **more})


def hosts(stage: Stage, number: int, effort: Effort, count: Count) -> None:
    stage.fresh()
    chance = effort.chance(f"{count.what} {number}")
    site = stage.hosts()
    two = _starts(stage, site, chance)
    assert together(*two, apart=chance.uniform(0, APART)) == [0, 0]
    for each in two:
        ended_well(each)
    settled(stage, site)


def machines(stage: Stage, number: int, effort: Effort, count: Count) -> None:
    chance = effort.chance(f"{count.what} {number}")
    if number % AFRESH == 0:
        stage.fresh()
    site = stage.machines(chance.choices(SIZES, k=MANY))
    two = _starts(stage, site, chance)
    assert together(*two, apart=chance.uniform(0, APART)) == [0, 0]
    for each in two:
        ended_well(each)
    for figure, found in stage.figures().items():
        count.add(figure, found)
    settled(stage, site)


def beside(stage: Stage, number: int, effort: Effort, count: Count) -> None:
    stage.fresh()
    chance = effort.chance(f"{count.what} {number}")
    site = stage.hosts()
    if chance.random() < 0.5:  # else the apply begins with what the destroy finds
        alone(stage, site)
    two = _starts(stage, site, chance, destroy=True)
    assert together(*two, apart=chance.uniform(0, APART)) == [0, 0]
    assert left(stage, site) == []
    alone(stage, site)
    settled(stage, site)
    alone(stage, site, destroy=True)
    assert left(stage, site, none=True) == []


def killed(stage: Stage, strike: tuple[str, str], effort: Effort, count: Count, *, alone: bool) -> None:
    stage.fresh()
    chance = effort.chance(f"{count.what} {strike} {alone}")
    site = stage.hosts()
    struck, other = _starts(stage, site, chance)
    struck = Start(**{**vars(struck), "strike": strike})
    first = struck.begin()
    if alone:
        code = over(first)
    second = other.begin()
    assert over(second) == 0
    code = over(first)
    if code != KILLED:  # the other one was faster: nothing was left to do
        assert code == 0, code
        count.add("had nothing to do", 1)
    ended_well(other)
    last = Start(site, struck.machine, stage.sandbox)  # there it can be seen that the process has ended
    assert together(last) == [0]
    ended_well(last)
    settled(stage, site)


def alone(stage: Stage, site: Path, *, destroy: bool = False) -> None:
    """A run that nobody disturbs, on the second machine, which ends well."""
    run = Start(site, stage.folder / MACHINES_OF_RUNS[1], stage.sandbox, destroy=destroy)
    assert together(run) == [0]
    ended_well(run)


def settled(stage: Stage, site: Path) -> None:
    """Nothing is left to do, and nothing of what was begun is left."""
    assert left(stage, site) == []
    context = bfinfra.RunContext(sandbox=stage.sandbox, retry=QUICK)
    found = bfinfra.plan(_loaded(stage, site), context=context)
    assert [str(item.key) for item in found.pending] == []
    assert found.problems == ()


def _loaded(stage: Stage, site: Path) -> Any:
    return bfinfra.load(site, sandbox=stage.sandbox) if stage.sandbox else bfinfra.load(site)


def left(stage: Stage, site: Path, *, none: bool = False) -> list[str]:
    """Leases, hosts in maintenance mode, and notes of something begun; `none`: any attribute of ours."""
    transport = Transport(route=stage.sandbox.lookup) if stage.sandbox else Transport()
    vcenter = VCenter(_loaded(stage, site).vcenter, transport)
    with contextlib.closing(transport), contextlib.closing(vcenter):
        defined = vcenter.session.read(attributes.defined).values()
        found = [name for name in defined if name.startswith("bfinfra" if none else PREFIX)]
        moids = [moid for moid, _ in vcenter.hosts.notes(BEGUN).values()]
        for host in vcenter.hosts.read(moids, "bfinfra.mark"):
            found += [f"{host.name} is in maintenance mode"] if host.maintenance else []
            found += [f"{host.name}: {host.attributes[BEGUN]}"] if host.attributes.get(BEGUN) else []
    return found
