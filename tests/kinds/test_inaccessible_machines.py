"""A VM whose files vCenter can't read has no configuration, and so no mark: it is neither gone nor somebody
else's. One that its host no longer has is as vCenter last saw it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, paths

from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key

MACHINES = {"virtual_machine": "sckubw01", "bitfusion_server": "bf-01"}


UNREAD = ("inaccessible", "invalid")
"""Connection states of VMs whose configuration vCenter doesn't return."""


def losing(kind: str, how: str, sandbox: Any) -> str:
    done = apply(EXAMPLES[kind], sandbox)
    assert made(done), endings(done)
    sandbox.change({how: MACHINES[kind]})
    return f"{kind}/{MACHINES[kind]}"


@pytest.fixture(params=[(kind, how) for how in UNREAD for kind in MACHINES], ids="-".join)
def lost(request: pytest.FixtureRequest, sandbox: Any) -> str:
    """The address of a VM that was made, and whose configuration vCenter doesn't know now."""
    return losing(*request.param, sandbox)


def test_it_is_unreadable_and_no_second_one_is_made(lost, sandbox):
    path, before = EXAMPLES[lost.partition("/")[0]], sandbox.world()
    found = plan(path, sandbox)
    (why,) = [str(why) for key, why in found.unreadable.items() if str(key) == lost]
    assert re.search("is (inaccessible|invalid): vCenter can't read its configuration and its mark", why), why
    with pytest.raises(BfinfraError, match=r"inaccessible|invalid"):
        apply(path, sandbox)
    assert sandbox.world() == before


def test_drift_says_so_and_calls_it_neither_vanished_nor_well(lost, sandbox):
    found = drift(EXAMPLES[lost.partition("/")[0]], sandbox)
    assert re.search("inaccessible|invalid", str(found.unreadable[lost]))
    assert found.blind
    assert not [each for each in found.found if str(each.key) == lost]


def test_destroy_does_not_say_that_it_is_gone(lost, sandbox):
    done = apply(EXAMPLES[lost.partition("/")[0]], sandbox, destroy=True)
    assert endings(done)[lost] != "done"
    assert not made(done)


@pytest.mark.parametrize("kind", MACHINES)
def test_a_machine_that_its_host_no_longer_has_is_as_it_was_last_seen_and_stays(kind, sandbox):
    lost, path = losing(kind, "orphaned", sandbox), EXAMPLES[kind]
    before, found = sandbox.world(), drift(path, sandbox)
    assert "is orphaned: its host no longer has it" in found.unreadable[lost]
    assert found.blind
    assert not [each for each in found.found if str(each.key) == lost]
    assert lost in plan(path, sandbox).stale
    with pytest.raises(BfinfraError, match="is orphaned: its host no longer has it"):
        apply(path, sandbox, destroy=True)
    assert sandbox.world() == before


@pytest.mark.parametrize("kind", MACHINES)
def test_an_adoption_of_all_names_what_it_can_not_read(kind, sandbox):
    lost, path = losing(kind, "invalid", sandbox), EXAMPLES[kind]
    found = apply(path, sandbox, adopt_all=True).plan
    assert [w.problem.what for w in found.warnings if w.problem.what.startswith(f"{lost}: it is not adopted")]


@pytest.mark.parametrize("kind", MACHINES)
def test_a_machine_that_is_read_is_not_taken_for_one_by_the_path_that_somebody_called_it(kind, sandbox):
    path, name = EXAMPLES[kind], f"/vmfs/{MACHINES[kind]}.vmx"
    assert made(apply(path, sandbox))
    with administrator(sandbox) as si:
        (stranger,) = (each for each in paths(si).values() if each.name == MACHINES[kind])
        assert isinstance(stranger, vim.VirtualMachine)
        nothing = vim.option.OptionValue(key="bfinfra.mark", value="")
        WaitForTask(stranger.ReconfigVM_Task(vim.vm.ConfigSpec(name=name, extraConfig=[nothing])))
        before = stranger.config.changeVersion
        with pytest.raises(BfinfraError, match=f"there is no {kind}/{MACHINES[kind]} yet"):
            apply(path, sandbox, adopt=frozenset({Key(kind, MACHINES[kind])}))
        assert stranger.config.changeVersion == before
