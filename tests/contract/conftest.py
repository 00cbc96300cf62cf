from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.calls import Account
from contract.cassette import Tape
from contract.plugin import ACCOUNT, SIDE, name_of
from contract.scrub import Scrub
from contract.sides import (
    CASSETTES,
    KUBE,
    VCSIM,
    KubernetesSide,
    Side,
    VCenterSide,
    api_address,
    live_kubernetes,
    live_vcsim,
    no_sockets,
    sandbox_kubernetes,
    sandbox_vcenter,
    taped_kubernetes,
    taped_vcsim,
)
from peers.found import Peers
from peers.own_vcsim import started

from bfinfra import sandbox

WORLD = Path(__file__).with_name("world.yaml")
GO_MOD = Path(__file__).parents[1] / "peers/go.mod"


@pytest.fixture(scope="session")
def world_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sandbox.Running]:
    state = tmp_path_factory.mktemp("contract")
    yield sandbox.start(WORLD, state, pace=0)
    sandbox.stop(state)


@pytest.fixture(scope="session")
def own_vcsim(peers: Peers) -> Iterator[Peers]:
    """A vcsim of the suite's own: what it makes has the same ids each time, and its faults hit nobody
    else.
    """
    with started(peers) as found:
        yield found


@pytest.fixture(scope="module")
def empty_vcsim(peers: Peers) -> Iterator[Peers]:
    """One for a module whose tests leave nothing behind: the suite's own keeps what vcsim doesn't clean
    up.
    """
    with started(peers) as found:
        yield found


@pytest.fixture
def account(request: pytest.FixtureRequest) -> Account:
    request.node.stash[ACCOUNT] = made = Account()
    return made


def tape_of(
    request: pytest.FixtureRequest, backend: str, version: str, scrub: Scrub, *, recording: bool
) -> Tape:
    folders = [CASSETTES / backend / version] if version else sorted((CASSETTES / backend).iterdir())
    folders[0].mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", name_of(request.node).removeprefix("test_contract_")).strip("-")
    return Tape(folders[0] / f"{name}.yaml", scrub, recording=recording)


def head(tape: Tape, peer: str, version: str, own: str = "") -> None:
    """Who was recorded, which version of it, and when."""
    tape.note("peer", peer)
    tape.note("version", version)
    tape.note("recorded", dt.datetime.now(dt.UTC).date().isoformat())
    if own:
        tape.note("own", own)


def running(request: pytest.FixtureRequest, side: Side, tape: Tape | None) -> Iterator[Any]:
    """The side, closed at the end; a cassette then is whole, or was played to its end."""
    request.node.stash[SIDE] = side
    yield side
    side.close()
    if tape:
        tape.finish()


def records(request: pytest.FixtureRequest) -> bool:
    """Not where the peer can't do it, nor what a cassette can't hold."""
    return bool(request.config.getoption("--record")) and all(
        mark.args[0] == "sandbox" for mark in request.node.iter_markers("lacks")
    )


def one_of(
    request: pytest.FixtureRequest,
    mode: str,
    backend: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    sandbox: Callable[[Any], Side],
    live: Callable[[pytest.FixtureRequest], tuple[Side, Tape | None]],
    taped: Callable[[Tape], Side],
) -> Iterator[Any]:
    """The side that the mode asks for."""
    if mode == "sandbox":
        world = request.getfixturevalue("world_process")
        world.reset()
        yield from running(request, sandbox(world), None)
    elif mode == "live":
        yield from running(request, *live(request))
    else:
        tape = tape_of(request, backend, "", Scrub({}, (SECRET,)), recording=False)
        with no_sockets(monkeypatch):
            yield from running(request, taped(tape), tape)


@pytest.fixture
def vcenter(
    request: pytest.FixtureRequest, mode: str, account: Account, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VCenterSide]:
    """A vCenter: the sandbox's, vcsim, or vcsim's cassette."""
    yield from one_of(
        request, mode, "vcenter", monkeypatch, sandbox=sandbox_vcenter, live=on_vcsim, taped=taped_vcsim
    )


def on_vcsim(request: pytest.FixtureRequest) -> tuple[VCenterSide, Tape | None]:
    peers, tape = request.getfixturevalue("own_vcsim"), None
    side = live_vcsim(peers)
    if records(request):
        version = re.search(r"govmomi (v\S+)", GO_MOD.read_text())[1]
        tape = tape_of(
            request,
            "vcenter",
            f"vcsim-{version}",
            Scrub({peers.vcsim: "vcsim.test"}, (peers.password, SECRET)),
            recording=True,
        )
        head(tape, VCSIM, version)
        side.middleware = (tape.filling,)
    return side, tape


@pytest.fixture
def kubernetes(
    request: pytest.FixtureRequest, mode: str, account: Account, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubernetesSide]:
    """A Kubernetes API: the sandbox's, kube-apiserver, or its cassette."""
    yield from one_of(
        request,
        mode,
        "kubernetes",
        monkeypatch,
        sandbox=sandbox_kubernetes,
        live=on_kube,
        taped=taped_kubernetes,
    )


def on_kube(request: pytest.FixtureRequest) -> tuple[KubernetesSide, Tape | None]:
    peers, tape, own = request.getfixturevalue("peers"), None, f"-{uuid.uuid4().hex[:8]}"
    side = live_kubernetes(peers, own)
    if records(request):
        version = side.open().version()
        side.transports.clear()
        users = [config["users"][0]["user"] for config in side.configs.values()]
        scrub = Scrub(
            {api_address(side.configs["admin"]): "kubernetes.test:6443"},
            (*(str(v) for user in users for v in user.values()), SECRET),
        )
        tape = tape_of(request, "kubernetes", f"{KUBE}-{version}", scrub, recording=True)
        head(tape, KUBE, version, own)
        side.middleware = (side.aged, tape.filling)
    return side, tape


SECRET = "canary-of-the-contract-4711"


@pytest.fixture
def secret() -> str:
    """A value that no cassette may hold."""
    return SECRET


@pytest.fixture
def space(kubernetes: KubernetesSide, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own, gone with it."""
    cluster = kubernetes.open()
    name = f"contract-{abs(hash_of(request.node.originalname)):05d}{kubernetes.own}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    kubernetes.closing.append(lambda: cluster.delete("v1", "Namespace", name))
    return name


def hash_of(text: str) -> int:
    return sum(ord(c) * 31**i for i, c in enumerate(text)) % 99991
