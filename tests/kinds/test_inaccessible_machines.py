"""A VM whose files vCenter can't read has no configuration, and so no mark: it is neither gone nor somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, paths

from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key

MACHINES = {"virtual_machine": "sckubw01", "bitfusion_server": "bf-01"}


@pytest.fixture(params=MACHINES)
def lost(request: pytest.FixtureRequest, sandbox: Any) -> str:
    """The address of a VM that was made, and that vCenter knows by its file alone now."""
    done = apply(EXAMPLES[request.param], sandbox)
    assert made(done), endings(done)
    sandbox.change({"inaccessible": MACHINES[request.param]})
    return f"{request.param}/{MACHINES[request.param]}"


def test_it_is_unreadable_and_no_second_one_is_made(lost, sandbox):
    path, before = EXAMPLES[lost.partition("/")[0]], sandbox.world()
    found = plan(path, sandbox)
    (why,) = [str(why) for key, why in found.unreadable.items() if str(key) == lost]
    assert "is inaccessible: vCenter can't read its configuration and its mark" in why
    assert ".vmx" in why
    with pytest.raises(BfinfraError, match="inaccessible"):
        apply(path, sandbox)
    assert sandbox.world() == before


def test_drift_says_so_and_calls_it_neither_vanished_nor_well(lost, sandbox):
    found = drift(EXAMPLES[lost.partition("/")[0]], sandbox)
    assert "inaccessible" in str(found.unreadable[lost])
    assert found.blind
    assert not [each for each in found.found if str(each.key) == lost]


def test_destroy_does_not_say_that_it_is_gone(lost, sandbox):
    done = apply(EXAMPLES[lost.partition("/")[0]], sandbox, destroy=True)
    assert endings(done)[lost] != "done"
    assert not made(done)


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
