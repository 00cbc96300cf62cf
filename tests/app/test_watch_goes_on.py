"""A watch that runs for months: what came after its start is followed, certificates and passwords are renewed,
and reads at intervals are spread.
"""

from __future__ import annotations

import shutil
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from app.test_drift_watch import IN_CLUSTER, fields, labelled, machine, settled, watching
from kinds.lifecycle import EXAMPLES, apply, drift, made
from pyVmomi import vim
from rights.given import administrator
from waiting import until

from bfinfra import sandbox as sandboxes
from bfinfra.app import login
from bfinfra.sandbox import SMALL_WORLD, Running

pytestmark = pytest.mark.thorough


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))


def test_a_machine_that_is_made_again_is_followed_like_the_first(sandbox: Running) -> None:
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    with watching(path, sandbox) as watched:
        watched.next()
        with machine(sandbox) as vm:
            settled(vm.PowerOffVM_Task())
            settled(vm.Destroy_Task())
        until(lambda: watched.sights and fields(watched.sights[-1].report) == [""])
        assert made(apply(path, sandbox))
        until(lambda: watched.sights[-1].report.found == ())
        with machine(sandbox) as vm:
            settled(vm.PowerOffVM_Task())
        until(lambda: fields(watched.sights[-1].report) == ["power"])


def test_an_object_of_a_cluster_that_comes_later_is_followed(sandbox: Running, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(IN_CLUSTER)
    with watching(path, sandbox) as watched:
        watched.next()
        assert made(apply(path, sandbox))
        until(lambda: watched.sights[-1].report.found == ())
        labelled(sandbox, "other")
        until(lambda: fields(watched.sights[-1].report) == ["labels.team"])
        assert not watched.interruptions


def test_a_type_of_object_that_is_deleted_is_drift_and_no_lost_cluster(sandbox: Running) -> None:
    path = EXAMPLES["manifests"]
    assert made(apply(path, sandbox))
    with watching(path, sandbox) as watched:
        watched.next()
        sandbox.change(
            {
                "address": "10.3.0.1:6443",
                "method": "DELETE",
                "path": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.sched.example.com",
            }
        )
        until(lambda: sorted(fields(watched.sights[-1].report)) == sorted(fields(drift(path, sandbox))))
        assert any("Queue" in field for field in fields(watched.sights[-1].report))
        assert made(apply(path, sandbox))
        until(lambda: watched.sights[-1].report.found == ())
        assert not any(each.lost for each in watched.sights)


@contextmanager
def own_world(folder: Path, **vcenter: object) -> Iterator[tuple[Path, Running]]:
    """A world whose vCenter has the password in a file, and a site that reads it from there."""
    world = yaml.safe_load(SMALL_WORLD.read_text())
    world["env"]["VCENTER_PASSWORD"] = "First-password-1!"
    (folder / "world.yaml").write_text(yaml.safe_dump(world))
    (folder / "password").write_text("First-password-1!")
    site = yaml.safe_load(EXAMPLES["resource_pool"].read_text())
    site["vcenter"] |= {"password": {"file": str(folder / "password")}, **vcenter}
    (folder / "site.yaml").write_text(yaml.safe_dump(site))
    running = sandboxes.start(folder / "world.yaml", folder / "world", pace=0)
    try:
        yield folder / "site.yaml", running
    finally:
        sandboxes.stop(folder / "world")


def renewed(folder: Path, password: str) -> Running:
    """vCenter is started again, with another password."""
    world = yaml.safe_load((folder / "world.yaml").read_text())
    world["env"]["VCENTER_PASSWORD"] = password
    sandboxes.stop(folder / "world")
    (folder / "world.yaml").write_text(yaml.safe_dump(world))
    return sandboxes.start(folder / "world.yaml", folder / "world", pace=0)


def limited(sandbox: Running, mebibytes: int) -> None:
    """Somebody limits the pool's memory."""
    with administrator(sandbox) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.ResourcePool], True)
        pool = next(each for each in view.view if each.name == "gpu")
        memory = vim.ResourceAllocationInfo(limit=mebibytes)
        change = vim.ResourceConfigSpec(memoryAllocation=memory, cpuAllocation=vim.ResourceAllocationInfo())
        pool.UpdateConfig(pool.name, change)


def test_a_password_that_changes_twice_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "LOOK", 0.05)
    with own_world(tmp_path) as (path, first):
        assert made(apply(path, first))
        with watching(path, first) as watched:
            watched.next()
            for password, limit in (("Second-password-2!", 40 << 10), ("Third-password-3!", 48 << 10)):
                sandbox = renewed(tmp_path, password)
                until(lambda: sandbox.tally()["calls"].get("vcenter", {}).get("Login"))  # noqa: B023 - called in the loop
                time.sleep(3)
                assert sandbox.tally()["calls"]["vcenter"]["Login"] <= 2, "more of them lock an account"
                (tmp_path / "password").write_text(password)
                limited(sandbox, limit)
                until(lambda: [each.now for each in watched.sights[-1].report.found] == [limit << 20])  # noqa: B023 - as above


@pytest.mark.parametrize("authority", ["the same", "another"])
def test_a_certificate_that_is_renewed_is_followed(
    authority: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another authority, once the file that the site trusts has it."""
    monkeypatch.setattr(login, "LOOK", 0.05)
    trusted = tmp_path / "authority.pem"
    with own_world(tmp_path, trust={"ca_file": str(trusted)}) as (path, first):
        shutil.copy(first.ca_file, trusted)
        assert made(apply(path, first))
        with watching(path, first) as watched:
            watched.next()
            before = served(first)
            sandboxes.stop(tmp_path / "world")
            for each in first.ca_file.parent.glob("*.pem" if authority == "another" else "vc.*.pem"):
                each.unlink()
            second = sandboxes.start(tmp_path / "world.yaml", tmp_path / "world", pace=0)
            assert served(second) != before
            if authority == "another":
                until(lambda: watched.interruptions)
                time.sleep(2)
                assert not second.tally()["calls"].get("vcenter")
                shutil.copy(second.ca_file, trusted)
            until(lambda: second.tally()["calls"].get("vcenter", {}).get("Login"))
            limited(second, 40 << 10)
            until(lambda: [each.now for each in watched.sights[-1].report.found] == [40 << 30])


def served(sandbox: Running) -> str:
    """vCenter's certificate."""
    host, _, port = sandbox.clients["GOVC_URL"].removeprefix("https://").partition("/")[0].rpartition(":")
    return ssl.get_server_certificate((host, int(port)))
