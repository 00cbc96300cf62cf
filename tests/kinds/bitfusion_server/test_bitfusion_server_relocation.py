"""A server whose datastore changes, in the file or by hand, keeps its disks: they are moved, and its card stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, drift, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, paths

from bfinfra.model.plan import Action
from bfinfra.sandbox import Running, start, stop

WORLD = Path("specs/worlds/small.yaml")
ONE = "local: {capacity: 1TiB, clusters: [farm]}"
TWO = f"{ONE}\n  fast: {{capacity: 1TiB, clusters: [farm]}}"
SERVER = "/dc/vm/bf-01"


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Running]:
    """The small world with two datastores on the host."""
    text = WORLD.read_text()
    assert ONE in text
    world, state = tmp_path / "world.yaml", tmp_path / "sandbox"
    world.write_text(text.replace(ONE, TWO))
    yield start(world, state, pace=0)
    stop(state)


def site(folder: Path, datastore: str) -> Path:
    """`datastore`: "" to name none."""
    line = f"    datastore: {datastore}\n" if datastore else ""
    path = folder / "site.yaml"
    path.write_text(EXAMPLES["bitfusion_server"].read_text().replace("    gpus: 1\n", f"    gpus: 1\n{line}"))
    return path


def look(sandbox: Running) -> dict[str, Any]:
    with administrator(sandbox) as si:
        vm = paths(si)[SERVER]
        devices = vm.config.hardware.device
        return {
            "moid": vm._moId,
            "on": vm.runtime.powerState,
            "stores": sorted(
                each.backing.fileName.partition("]")[0].strip("[")
                for each in devices
                if isinstance(each, vim.vm.device.VirtualDisk)
            ),
            "cards": [
                each.backing.id for each in devices if isinstance(each, vim.vm.device.VirtualPCIPassthrough)
            ],
        }


def test_its_disks_go_to_the_other_datastore_and_the_machine_is_the_same(
    farm: Running, tmp_path: Path
) -> None:
    assert made(apply(site(tmp_path, "local"), farm))
    before = look(farm)
    assert before["on"] == "poweredOn"
    assert set(before["stores"]) == {"local"}
    assert before["cards"]
    found = next(
        each for each in plan(site(tmp_path, "fast"), farm).items if each.key.kind == "bitfusion_server"
    )
    assert (found.action, [type(step).__name__ for step in found.steps]) == (
        Action.UPDATE,
        ["Stop", "Relocate", "Start", "Note"],
    )
    assert {change.field for change in found.changes} == {"datastore"}
    assert made(apply(tmp_path / "site.yaml", farm))
    assert look(farm) == {**before, "stores": ["fast"] * len(before["stores"])}
    assert not any(each.steps for each in plan(tmp_path / "site.yaml", farm).items)


def test_one_that_somebody_moved_is_drift_and_comes_back(farm: Running, tmp_path: Path) -> None:
    path = site(tmp_path, "local")
    assert made(apply(path, farm))
    before = look(farm)
    with administrator(farm) as si:
        vm, stores = (
            paths(si)[SERVER],
            {each.name: each for each in paths(si).values() if isinstance(each, vim.Datastore)},
        )
        WaitForTask(vm.PowerOffVM_Task())
        WaitForTask(vm.RelocateVM_Task(vim.vm.RelocateSpec(datastore=stores["fast"])))
        WaitForTask(vm.PowerOnVM_Task())
    assert ("datastore", "fast", "local") in {
        (each.field, each.now, each.wanted) for each in drift(path, farm).found
    }
    assert made(apply(path, farm))
    assert look(farm) == before


def test_one_that_names_no_datastore_stays_where_it_is(farm: Running, tmp_path: Path) -> None:
    assert made(apply(site(tmp_path, "fast"), farm))
    assert made(apply(site(tmp_path, ""), farm))
    assert set(look(farm)["stores"]) == {"fast"}
