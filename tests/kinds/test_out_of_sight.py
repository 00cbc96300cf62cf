"""Every kind by its existing: what existed at the last look and isn't found is not taken for deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kinds.checking import diagnosed
from kinds.lifecycle import EXAMPLES, apply, by_ansible, drift, endings, made, plan, run_context, unhurried
from pyVmomi import vim
from rights.given import ACCOUNT, Site, administrator, give, paths
from rights.given import world as rights_world

import bfinfra
import bfinfra.kinds as registry
from bfinfra.app.forget import forget
from bfinfra.kinds import names
from bfinfra.model.drift import Cause
from bfinfra.model.errors import Refusal
from bfinfra.model.events import Ending
from bfinfra.model.finding import Health
from bfinfra.model.kind import Source
from bfinfra.model.rights import Use
from bfinfra.sandbox import Running

MADE_HERE = frozenset(registry.names("image"))
"""What is on this machine, which sees all of it."""


@contextmanager
def same_world(sandbox: Running) -> Iterator[None]:
    """A reset inside of it makes no other world of it: all that was made is only out of sight."""
    begun = Path(sandbox.files) / ".bfinfra" / "begun"
    at = begun.stat().st_mtime_ns
    yield
    begun.parent.mkdir(exist_ok=True)
    begun.touch()
    os.utime(begun, ns=(at, at))


@pytest.mark.thorough("namespace", "virtual_machine", "supervisor_namespace", "client_image")
@pytest.mark.parametrize(
    "kind", unhurried(each for each in names() if not issubclass(registry.kind(each), Source))
)
def test_what_is_out_of_sight_is_named_and_never_called_deleted(kind, sandbox):
    path = EXAMPLES[kind]
    first = apply(path, sandbox)
    assert made(first), endings(first)
    ours = {key for key in first.endings if not issubclass(registry.kind(key.kind), Source)}
    with same_world(sandbox):
        sandbox.reset()
    assert set(plan(path, sandbox, destroy=True).lost) == ours
    done = apply(path, sandbox, destroy=True)
    assert done.ending is Ending.FAILED
    assert {key for key, ended in done.endings.items() if ended.ending is Ending.FAILED} == ours
    assert all("out of sight" in str(done.endings[key].problem) for key in ours)
    found = {each.key: each for each in drift(path, sandbox).found}
    managed = {key for key in ours if registry.kind(key.kind).managed}
    assert {key for key, each in found.items() if each.cause is Cause.VANISHED} >= managed - {
        key for key in managed if by_ansible(key.kind)
    }
    forget(bfinfra.load(path, sandbox=sandbox), context=run_context(sandbox))
    assert apply(path, sandbox, destroy=True).ending is Ending.DONE


@pytest.mark.thorough("namespace", "virtual_machine")
@pytest.mark.parametrize("kind", unhurried(each for each in names() if registry.kind(each).managed))
def test_that_it_vanished_is_told_before_what_making_it_again_would_need(kind, sandbox, monkeypatch):
    path, real = EXAMPLES[kind], registry.kind(kind).steps
    first = apply(path, sandbox)
    assert made(first), endings(first)

    def refused(name, spec, state, context):
        if state is None:
            raise Refusal("there is no template fill-in", field="name")
        return real(name, spec, state, context)

    with same_world(sandbox):
        sandbox.reset()
    monkeypatch.setattr(registry.kind(kind), "steps", staticmethod(refused))
    report = drift(path, sandbox)
    mine = {key for key in first.endings if key.kind == kind}
    found = {each.key: each.why for each in report.found if each.cause is Cause.VANISHED}
    assert mine <= found.keys()
    assert all(found[key].endswith("it can't be made again: there is no template fill-in") for key in mine)
    assert not any("fill-in" in problem.what for problem in report.problems)


@pytest.mark.thorough("namespace", "virtual_machine", "supervisor_namespace", "client_image")
@pytest.mark.parametrize("kind", unhurried(names()))
def test_what_a_run_deleted_is_not_missed(kind, sandbox):
    path = EXAMPLES[kind]
    apply(path, sandbox)
    drift(path, sandbox)
    assert made(apply(path, sandbox, destroy=True))
    again = apply(path, sandbox, destroy=True)
    assert (again.plan.lost, again.ending) == ((), Ending.DONE)


def test_a_vm_that_rights_hide_is_named_by_plan_doctor_drift_and_destroy_and_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    site = Site.of("virtual_machine", tmp_path)
    with rights_world(tmp_path / "world") as sandbox:
        give(sandbox, site, site.rights(sandbox, *Use))
        path = site.path()
        first = apply(path, sandbox)
        assert made(first), endings(first)
        (key,) = (key for key in first.endings if key.kind == "virtual_machine")
        hide(sandbox, key.name)
        assert any("out of sight" in each.problem.why for each in plan(path, sandbox).warnings)
        (found,) = (each for each in diagnosed(path, sandbox) if each.check == "servers.sight")
        assert (found.about, found.health) == (str(key), Health.WARNING)
        assert [each.cause for each in drift(path, sandbox).found if each.key == key] == [Cause.VANISHED]
        gone = apply(path, sandbox, destroy=True)
        assert gone.ending is Ending.FAILED
        assert "not found any more" in str(gone.endings[key].problem)
        with administrator(sandbox) as si:
            (vm,) = (each for at, each in paths(si).items() if at.endswith(f"/{key.name}"))
            assert vm.runtime.powerState == "poweredOn"


def hide(sandbox: Running, name: str) -> None:
    """As an administrator does it: the role "No access" on the VM."""
    with administrator(sandbox) as si:
        (vm,) = (each for at, each in paths(si).items() if at.endswith(f"/{name}"))
        permission = vim.AuthorizationManager.Permission(
            principal=ACCOUNT, group=False, roleId=-5, propagate=True
        )
        si.content.authorizationManager.SetEntityPermissions(vm, [permission])
