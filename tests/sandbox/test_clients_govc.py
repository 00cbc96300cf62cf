"""govc on the running sandbox of the PoC's world: everything can be looked at, and what it changes behind
bfinfra's back is found and put right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from peers.found import Peers, run

from bfinfra import sandbox, worlds
from bfinfra.cli import main

pytestmark = pytest.mark.peers
SITE = Path(__file__).parents[2] / "specs/singapore-poc.yaml"
SERVER = "bitfusion_server/bf-01"
Govc = Callable[..., str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("XDG_STATE_HOME", str(folder))
        patch.setenv("BFINFRA_STATE_HOME", str(folder / "journal"))
        yield patch


@pytest.fixture(scope="module")
def poc(home: pytest.MonkeyPatch) -> Iterator[sandbox.Running]:
    """Where `--sandbox` looks for it, without waiting times."""
    world = worlds.world_of(SITE)
    state = worlds.state(world)
    yield sandbox.start(world, state, pace=0)
    sandbox.stop(state)


@pytest.fixture(scope="module")
def govc(poc: sandbox.Running, peers: Peers) -> Govc:
    """As a shell has it after reading the sandbox's `env`: the certificate is checked."""
    env = {**poc.clients, "GOVC_PASSWORD": poc.env["VCENTER_PASSWORD"], "GOVC_PERSIST_SESSION": "false"}
    return lambda *words: run([str(peers.bin / "govc"), *words], env)


def bfinfra(*words: str) -> int:
    return main([*words, str(SITE), "--sandbox"])


@pytest.fixture
def applied(poc: sandbox.Running) -> Iterator[Any]:
    """The world before, then everything applied."""
    poc.reset()
    before = poc.world()
    assert bfinfra("apply", "--yes") == 0
    yield before


@pytest.fixture
def existing(govc: Govc) -> None:
    """Applied, for looking only; the others leave it so, or destroyed."""
    if "bf-01" not in govc("find", "/", "-type", "m"):
        assert bfinfra("apply", "--yes") == 0


def off(govc: Govc) -> None:
    govc("vm.power", "-off", "bf-01")


def less_memory(govc: Govc) -> None:
    off(govc)
    govc("vm.change", "-vm", "bf-01", "-m", "65536", "-c", "2")


def narrow_window(govc: Govc) -> None:
    off(govc)
    govc("vm.change", "-vm", "bf-01", "-e", "pciPassthru.64bitMMIOSizeGB=16")


def lose_a_card(govc: Govc) -> None:
    off(govc)
    cards = [each for each in govc("device.ls", "-vm", "bf-01").split() if each.startswith("pcipassthrough-")]
    assert len(cards) == 2
    govc("device.remove", "-vm", "bf-01", cards[0])


def another_folder(govc: Govc) -> None:
    govc("folder.create", "/Singapore/vm/theirs")
    govc("object.mv", "/Singapore/vm/bf-01", "/Singapore/vm/theirs")


def gone(govc: Govc) -> None:
    govc("vm.destroy", "bf-01")


@pytest.mark.parametrize(
    ("meddle", "fields"),
    [
        (off, {"power"}),
        (less_memory, {"power", "memory", "cpus"}),
        (narrow_window, {"power", "mmio"}),
        (lose_a_card, {"power", "gpus"}),
        (another_folder, {"folder"}),
        (gone, set()),
    ],
)
def test_drift_finds_what_was_changed_and_apply_puts_it_right(
    meddle: Callable[[Govc], None],
    fields: set[str],
    applied: Any,
    govc: Govc,
    poc: sandbox.Running,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = govc("vm.info", "-e", "-r", "bf-01")
    meddle(govc)
    written = poc.tally()["written"]
    capsys.readouterr()
    assert bfinfra("drift", "--output", "json") == 2
    assert poc.tally()["written"] == written
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {each["address"] for each in found} == {SERVER}
    assert {each["cause"] for each in found} == {"drift" if fields else "vanished"}
    assert {each["field"] for each in found} == (fields or {""})
    assert bfinfra("apply", "--yes") == 0
    assert bfinfra("drift") == 0
    if fields:
        assert _plain(govc("vm.info", "-e", "-r", "bf-01")) == _plain(whole)


def test_destroy_leaves_the_world_as_it_was_before(applied: Any, govc: Govc, poc: sandbox.Running) -> None:
    lose_a_card(govc)
    assert bfinfra("apply", "--yes") == 0
    assert bfinfra("destroy", "--yes") == 0
    assert poc.world() == applied


def _plain(info: str) -> list[str]:
    """Without the boot time, which a power cycle moves."""
    return [line for line in info.splitlines() if "Boot time" not in line]


LOOKS = [
    (("vm.info", "bf-01"), "Power state:  poweredOn"),
    (("vm.ip", "bf-01"), "172.24.210.80"),
    (("device.ls", "-vm", "bf-01"), "pcipassthrough-"),
    (("device.info", "-vm", "bf-01", "disk-*"), "[gpu-local] bf-01/bf-01_1.vmdk"),
    (("object.collect", "-json", "/Singapore/vm/bf-01", "config"), "pciPassthru.use64bitMMIO"),
    (
        (
            "object.collect",
            "-s",
            "/Singapore/host/gpu-farm/esx209-161.aiml.local",
            "runtime.inMaintenanceMode",
        ),
        "false",
    ),
    (("datacenter.info",), "Hosts:"),
    (("cluster.usage", "-json", "compute"), "memory"),
    (("session.ls",), "AIML.LOCAL\\administrator"),
    (("role.ls",), "Admin"),
    (("permissions.ls",), "Admin"),
    (("fields.ls",), "bfinfra"),
    (("fields.info", "/Singapore/host/gpu-farm/esx209-161.aiml.local"), "bfinfra"),
    (("events", "-n", "50"), "bf-01"),
    (("tasks",), "bf-01"),
    (("datastore.ls", "-ds", "gpu-local"), "bf-01"),
    (("folder.info", "/Singapore/vm"), "Types"),
    (("library.ls",), "tkr"),
    (("namespace.ls",), "cnasg"),
    (("tree", "/Singapore"), "bf-01"),
    (("device.pci.ls", "-vm", "bf-01"), "0000:3b:00.0"),
    (("vm.info", "-json", "-waitip", "bf-01"), "toolsOk"),
    (("find", "/", "-type", "m", "-runtime.powerState", "poweredOn"), "bf-01"),
    (("option.ls", "config.vmacore"), "sessionTimeout"),
]


@pytest.mark.parametrize(("words", "output"), LOOKS, ids=[" ".join(words) for words, _ in LOOKS])
def test_everything_can_be_looked_at(words: tuple[str, ...], output: str, existing: None, govc: Govc) -> None:
    assert output in govc(*words)
