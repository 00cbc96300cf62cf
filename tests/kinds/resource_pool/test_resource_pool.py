"""Resource pools: whose they are at each instant, what is in them, where they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds.lifecycle import EVERYTHING, EXAMPLES, KILLED, apply, endings, kill_at, made, plan, world
from kinds.test_unmanaged import forced
from kinds.unmanaged import Entry, Look
from pyVmomi import vim
from rights.given import administrator

import bfinfra
from bfinfra.kinds.vcenter.resource_pool import Spec
from bfinfra.model.errors import SiteError
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

HEAD = (EXAMPLES["resource_pool"]).read_text().partition("resource_pool:")[0]


@pytest.fixture
def site(tmp_path: Path):
    def write(pools: str) -> Path:
        (tmp_path / "site.yaml").write_text(f"{HEAD}resource_pool:\n{pools}")
        return tmp_path / "site.yaml"

    return write


def done(outcome) -> None:
    assert made(outcome), endings(outcome)


def test_a_limit_below_the_reservation_is_refused_at_its_line(site):
    with pytest.raises(SiteError) as refused:
        bfinfra.load(
            site("  gpu:\n    cluster: farm\n    memory:\n      reservation: 2GiB\n      limit: 1GiB\n")
        )
    (problem,) = refused.value.problems
    assert problem.what.endswith("memory.limit: it is less than memory.reservation, which vCenter refuses")
    assert problem.where.line == len(HEAD.splitlines()) + 6
    assert problem.next == "raise memory.limit, or lower memory.reservation"


def test_part_of_a_mebibyte_is_refused():
    with pytest.raises(ValueError, match="in whole MiB"):
        Spec.model_validate({"cluster": "farm", "memory": {"reservation": "1500KiB"}})


def test_what_the_file_no_longer_limits_is_unlimited_again(sandbox: Running, site):
    sandbox.reset()
    done(apply(site("  gpu: {cluster: farm, cpu: {limit: 8GHz}, memory: {shares: 5000}}\n"), sandbox))
    file = site("  gpu: {cluster: farm}\n")
    (item,) = plan(file, sandbox).items
    changed = {change.field: (change.now, change.wanted) for step in item.steps for change in step.changes}
    assert changed == {"cpu.limit": (8000, None), "memory.shares": (5000, "normal")}
    done(apply(file, sandbox))
    assert plan(file, sandbox).pending == ()


@pytest.mark.parametrize("call", ["UpdateConfig", "AddCustomFieldDef", "SetField"])
def test_killed_amid_its_making_and_amid_its_finishing_it_is_finished_by_the_next_run(
    sandbox: Running, site, tmp_path, call
):
    sandbox.reset()
    before, state = world(sandbox), tmp_path / "state"
    file = site("  gpu: {cluster: farm, memory: {limit: 64GiB}}\n")
    assert kill_at(file, sandbox, 1, "after", state, method="CreateResourcePool") == KILLED
    assert kill_at(file, sandbox, 1, "after", state, method=call) == KILLED
    done(apply(file, sandbox))
    assert 'ResourcePool /dc/host/farm/Resources/gpu"' in world(sandbox)
    done(apply(file, sandbox, destroy=True))
    assert world(sandbox) == before


def test_a_pool_goes_into_another_and_back_with_what_is_in_it(sandbox: Running, site):
    sandbox.reset()
    both = "  a: {cluster: farm}\n  b: {cluster: farm%s}\n"
    done(apply(site(both % ""), sandbox))
    done(apply(site(both % ", parent: a"), sandbox))
    assert plan(site(both % ", parent: a"), sandbox).pending == ()
    done(apply(site(both % ""), sandbox))
    assert plan(site(both % ""), sandbox).pending == ()


def test_somebody_s_pool_of_that_name_is_left_alone_until_it_is_adopted(
    sandbox: Running, site, tmp_path, monkeypatch
):
    sandbox.reset()
    file = site("  gpu: {cluster: farm, memory: {limit: 64GiB}}\n")
    done(apply(file, sandbox))
    before = world(sandbox)
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(file.read_text().replace("site: example", "site: theirs"))
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "elsewhere"))
    found = plan(theirs, sandbox)
    assert [problem.what for problem in found.problems]
    assert world(sandbox) == before


def test_a_pool_that_somebody_made_is_adopted_as_it_is_and_then_changed(sandbox: Running, site):
    sandbox.reset()
    look = pool(sandbox, "gpu")
    file = site("  gpu: {cluster: farm, cpu: {shares: high}}\n")
    (problem,) = plan(file, sandbox).problems
    assert "bfinfra adopt" in str(problem)
    first = look()
    done(apply(file, sandbox, adopt=frozenset({Key("resource_pool", "gpu")})))
    assert look()[1:] == first[1:]
    done(apply(file, sandbox))
    assert look() != first
    assert plan(file, sandbox).pending == ()
    done(apply(file, sandbox, destroy=True))
    assert "/farm/Resources/gpu" not in world(sandbox)


def test_a_missing_cluster_is_reported_with_those_that_exist(sandbox: Running, site):
    sandbox.reset()
    (problem,) = plan(site("  gpu: {cluster: frm}\n"), sandbox).problems
    assert "there is no cluster frm" in problem.what
    assert "farm" in problem.next


def test_a_misspelt_parent_is_reported_with_the_pool_of_the_site_that_is_meant(sandbox: Running, site):
    sandbox.reset()
    pools = site("  gpu: {cluster: farm}\n  inner: {cluster: farm, parent: gpuu}\n")
    (problem,) = plan(pools, sandbox).problems
    assert "there is no resource pool gpuu on farm" in problem.what
    assert "gpu" in problem.next


def test_what_others_put_into_it_is_named_before_it_goes_and_stays(sandbox: Running, site):
    sandbox.reset()
    done(apply(site("  gpu: {cluster: farm}\n"), sandbox))
    look = pool(sandbox, "theirs", "/gpu")
    assert look()
    leaving = site("  {}\n")
    (item,) = plan(leaving, sandbox).items
    assert item.contents == ("resource pool theirs is in it",)
    assert "resource pool theirs is in it" in forced(leaving, sandbox, lambda _: EVERYTHING)["refused"]
    assert forced(leaving, sandbox) == {"resource_pool/gpu": "done"}
    assert "ResourcePool /dc/host/farm/Resources/theirs" in world(sandbox)


def pool(sandbox: Running, name: str, within: str = "") -> Look:
    path = f"/dc/host/farm/Resources{within}"
    with administrator(sandbox) as si:
        share = vim.ResourceAllocationInfo(
            reservation=0, limit=-1, expandableReservation=True, shares=vim.SharesInfo(level="low", shares=0)
        )
        spec = vim.ResourceConfigSpec(cpuAllocation=share, memoryAllocation=share)
        si.content.searchIndex.FindByInventoryPath(path).CreateResourcePool(name, spec)

    def look() -> tuple[object, ...]:
        with administrator(sandbox) as si:
            found = si.content.searchIndex.FindByInventoryPath(f"{path}/{name}")
            return found.config.changeVersion, str(found.config.cpuAllocation)

    return look


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return pool(sandbox, name)


CHANGED_FIELDS = [
    {"memory": {"reservation": "32GiB", "limit": "96GiB"}},
    {"cpu": {"shares": "high"}},
    {"cluster": "compute"},
]
UNMANAGED = Entry(
    at="gpu",
    plant=unmanaged,
    inside="what others put into it goes to its parent, once that is allowed (test_resource_pool.py)",
)
