"""Each place of a virtual machine, in the file and by hand: what the plan says of it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, paths
from rights.others import add_disk_to_template

from bfinfra.kinds.vcenter.virtual_machine.kind import VirtualMachine
from bfinfra.model.plan import Action
from bfinfra.model.rights import Use
from bfinfra.sandbox import Running, start, stop

WORLD = Path(__file__).parent / "two-of-each.yaml"
FIELDS = {
    "template": "centos-7.6",
    "cluster": "farm",
    "host": "esx1.small.test",
    "datastore": "local",
    "cpus": 2,
    "memory": "4GiB",
    "adapters": [{"network": "VM Network"}],
    "disks": {"scsi0:1": {"size": "1GiB", "datastore": "fast"}},
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("sandbox")
    yield start(WORLD, state, pace=0)
    stop(state)


class Farm:
    """A site of one machine, and an administrator beside it."""

    def __init__(self, sandbox: Running, folder: Path) -> None:
        self.sandbox, self.path = sandbox, folder / "site.yaml"
        self.site = yaml.safe_load(EXAMPLES["virtual_machine"].read_text())
        self.site["virtual_machine"] = {"w1": dict(FIELDS)}
        add_disk_to_template(sandbox, Use.APPLY)
        with administrator(sandbox) as si:
            root = paths(si)
            root["/dc/vm"].CreateFolder("gpu")
            allocation = vim.ResourceAllocationInfo(
                reservation=0,
                limit=-1,
                expandableReservation=True,
                shares=vim.SharesInfo(level="normal", shares=0),
            )
            whole = vim.ResourceConfigSpec(cpuAllocation=allocation, memoryAllocation=allocation)
            root["/dc/host/farm/Resources"].CreateResourcePool("gpu", whole)
        assert made(self.apply())

    def write(self, **fields: Any) -> None:
        self.site["virtual_machine"]["w1"] = {k: v for k, v in {**FIELDS, **fields}.items() if v is not None}
        self.path.write_text(yaml.safe_dump(self.site))

    def apply(self, **fields: Any) -> Any:
        self.write(**fields)
        return apply(self.path, self.sandbox)

    def fields(self) -> set[str]:
        (item,) = plan(self.path, self.sandbox).items
        return {change.field for change in item.changes}

    def where(self, name: str = "w1") -> dict[str, Any]:
        with administrator(self.sandbox) as si:
            (vm,) = (each for path, each in paths(si).items() if path.endswith(f"/{name}"))
            disks = [
                each for each in vm.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk)
            ]
            return {
                "id": vm._moId,
                "on": vm.runtime.powerState == "poweredOn",
                "cluster": vm.runtime.host.parent.name,
                "host": vm.runtime.host.name,
                "folder": vm.parent.name,
                "pool": vm.resourcePool.name,
                "stores": [each.backing.datastore.name for each in disks],
            }

    def somebody(self, does: Callable[[dict[str, Any], Any], Any]) -> None:
        with administrator(self.sandbox) as si:
            found = paths(si)
            if (
                task := does(found, next(vm for path, vm in found.items() if path.endswith("/w1")))
            ) is not None:
                WaitForTask(task)


@pytest.fixture
def farm(started: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Farm:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    started.reset()
    return Farm(started, tmp_path)


HERE = {
    "on": True,
    "cluster": "farm",
    "host": "esx1.small.test",
    "folder": "vm",
    "pool": "Resources",
    "stores": ["local", "fast"],
}
SECOND = {"scsi0:1": {"size": "1GiB", "datastore": "local"}}
BARN = {"cluster": "barn", "host": "esx3.small.test"}


@pytest.mark.parametrize(
    ("fields", "changed", "there"),
    [
        ({"host": "esx2.small.test"}, {"host"}, {"host": "esx2.small.test"}),
        (BARN, {"cluster", "host"}, BARN),
        ({"datastore": "fast"}, {"datastore"}, {"stores": ["fast", "fast"]}),
        ({"disks": SECOND}, {"disks.scsi0:1.datastore"}, {"stores": ["local", "local"]}),
        ({"folder": "gpu"}, {"folder"}, {"folder": "gpu"}),
        ({"resource_pool": "gpu"}, {"resource_pool"}, {"pool": "gpu"}),
    ],
    ids=["host", "cluster", "datastore", "disk", "folder", "pool"],
)
def test_a_machine_goes_where_the_file_says_while_it_runs(farm, fields, changed, there):
    before = farm.where()
    assert {**before, "id": ""} == {**HERE, "id": ""}
    farm.write(**fields)
    assert farm.fields() == changed
    done = farm.apply(**fields)
    assert made(done), endings(done)
    assert farm.where() == {**before, **there}
    assert (farm.fields(), drift(farm.path, farm.sandbox).found) == (set(), ())


def relocated(**to: str) -> Callable[[Any, Any], Any]:
    def does(found: Any, vm: Any) -> Any:
        return vm.RelocateVM_Task(vim.vm.RelocateSpec(**{at: found[path] for at, path in to.items()}))

    return does


@pytest.mark.parametrize(
    ("does", "changed"),
    [
        (relocated(host="/dc/host/farm/esx2.small.test"), {"host"}),
        (relocated(datastore="/dc/datastore/fast"), {"datastore"}),
        (lambda found, vm: found["/dc/vm/gpu"].MoveIntoFolder_Task([vm]), {"folder"}),
        (
            lambda found, vm: found["/dc/host/farm/Resources/gpu"].MoveIntoResourcePool([vm]),
            {"resource_pool"},
        ),
        (lambda found, vm: vm.ReconfigVM_Task(vim.vm.ConfigSpec(name="mine/w1")), {"name"}),
    ],
    ids=["host", "datastore", "folder", "pool", "name"],
)
def test_what_somebody_moved_is_drift_and_is_moved_back(farm, does, changed):
    before = farm.where()
    farm.somebody(does)
    (_found,) = drift(farm.path, farm.sandbox).found
    assert {each.field for each in drift(farm.path, farm.sandbox).found} == changed
    assert made(farm.apply())
    assert farm.where() == before
    assert farm.fields() == set()


def test_a_machine_of_another_template_is_made_anew_and_not_without_an_allowance(farm):
    before = farm.where()
    farm.write(template="centos-8")
    (item,) = plan(farm.path, farm.sandbox).items
    assert item.action is Action.REPLACE
    assert made(farm.apply(template="centos-8"))
    assert farm.where()["id"] != before["id"]
    assert farm.fields() == set()


def test_a_running_machine_whose_change_is_refused_runs_on(farm):
    """Somebody renamed it, and another machine has its name: the write that stops it first is refused."""
    farm.somebody(lambda _, vm: vm.ReconfigVM_Task(vim.vm.ConfigSpec(name="renamed")))

    def twin(found: Any) -> Any:
        where = vim.vm.RelocateSpec(
            pool=found["/dc/host/farm/Resources"], datastore=found["/dc/datastore/local"]
        )
        spec = vim.vm.CloneSpec(location=where, template=False, powerOn=False)
        return found["/dc/vm/centos-8"].CloneVM_Task(found["/dc/vm"], "w1", spec)

    with administrator(farm.sandbox) as si:
        WaitForTask(twin(paths(si)))
    (ending,) = endings(farm.apply(cpus=4)).values()
    assert "as before: power on w1" in ending
    assert farm.where("renamed")["on"]
    assert not farm.where("w1")["on"]


def test_a_running_machine_is_not_stopped_for_cpus_that_fill_no_sockets(farm):
    farm.somebody(lambda _, vm: vm.PowerOffVM_Task())
    farm.somebody(lambda _, vm: vm.ReconfigVM_Task(vim.vm.ConfigSpec(numCPUs=4, numCoresPerSocket=4)))
    assert made(farm.apply(cpus=4))
    farm.write(cpus=6)
    (problem,) = plan(farm.path, farm.sandbox).problems
    assert "6 CPUs are no multiple of the 4 cores per socket" in problem.what
    assert farm.where()["on"]


def test_a_running_machine_is_not_stopped_for_what_no_host_has(farm):
    farm.write(memory="200GiB", reserve=True)
    (problem,) = plan(farm.path, farm.sandbox).problems
    assert "its 200GiB don't fit on esx1.small.test, which has 128GiB" in problem.what


class Killed(BaseException):
    """Nothing runs after it."""


EVERYTHING = {
    "cpus": 4,
    "host": "esx2.small.test",
    "datastore": "fast",
    "folder": "gpu",
    "resource_pool": "gpu",
}
AFTERWARDS = {**HERE, "host": "esx2.small.test", "folder": "gpu", "pool": "gpu", "stores": ["fast", "fast"]}
STEPS = ["Stop", "Write", "Relocate", "Move", "Start"]


@pytest.mark.thorough("Write-after")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_change_that_was_killed_is_finished_by_the_next_apply(farm, step, when, monkeypatch):
    ran = []

    def run(self: Any, now: Any, report: Any, own: Any = VirtualMachine.run) -> None:
        ran.append(type(now).__name__)
        if ran[-1] != step or when == "after":
            own(self, now, report)
        if ran[-1] == step:
            raise Killed

    before = farm.where()
    with monkeypatch.context() as patched:
        patched.setattr(VirtualMachine, "run", run)
        with pytest.raises(Killed):
            farm.apply(**EVERYTHING)
    assert ran == STEPS[: STEPS.index(step) + 1]
    done = farm.apply(**EVERYTHING)
    assert made(done), endings(done)
    assert farm.where() == {**AFTERWARDS, "id": before["id"]}
    assert (farm.fields(), drift(farm.path, farm.sandbox).found) == (set(), ())
