"""What is set of a VM for the Bitfusion plug-in: off, set, on again; noted with what was there, and put
back.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made
from pydantic import ValidationError
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

from bfinfra.backends.vcenter.places import Found, Nowhere, Several, Thing
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.machine.notes import SETTINGS
from bfinfra.kinds.vcenter.bitfusion_vm import (
    BEFORE,
    BitfusionVM,
    BitfusionVmFacts,
    PutBack,
    Set,
    SetFirst,
    Spec,
    Start,
    State,
    Stop,
    StopFirst,
)
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

OWN, KEY = Mark("s", "bitfusion_vm/desk"), Key("virtual_machine", "desk")
SPEC = Spec(vm="desk", settings={"a.client": "true", "a.mode": "one"})
VM = Vm(
    moid="vm-1",
    name="desk",
    folder="f",
    pool="",
    datastores=frozenset(),
    host="host-1",
    on=True,
    connection="connected",
    instance_uuid="i",
    cpus=1,
    memory=1,
    reserved=False,
    firmware="bios",
    pci=(),
    nics=(),
    disks=(),
    extra={},
    properties={},
    ip="",
    tools=True,
)
SETTLED = {"a.client": "true", "a.mode": "one"}


def existing(mark=None, before=None, **changes):
    return State(mark=mark, vm="desk", machine=replace(VM, **changes), before=before or {})


MEANT = (
    Nowhere(("disk",)),
    Found(Thing(moid=VM.moid, name="desk")),
    Several(("/dc/vm/a/desk", "/dc/vm/b/desk")),
)
"""What the name leads to, by how many VMs have it."""


def steps(spec, state, needs=(), names=1):
    return BitfusionVM.steps(
        "desk",
        spec,
        state,
        PlanContext(OWN, needs=dict(needs), facts=BitfusionVmFacts({"desk": MEANT[names]})),
    )


def kinds(found):
    return [type(step) for step in found]


def test_it_is_set_while_the_vm_is_off_and_what_was_there_is_noted():
    found = steps(SPEC, existing(extra={"a.mode": "other"}))
    assert kinds(found) == [Stop, Set, Start]
    extra = found[1].extra
    assert SETTLED.items() <= extra.items()
    assert Mark.decode(extra[BEFORE]).applied == {"a.client": "", "a.mode": "other"}
    assert Mark.decode(extra[SETTINGS]).where("i") == OWN.committed(SPEC.applied())
    assert {change.field for change in found[0].changes} >= {"settings.a.client", "settings.a.mode"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (existing(extra=SETTLED), [Set]),
        (existing(OWN.committed(SPEC.applied()), extra=SETTLED), []),
        (existing(OWN.committed(SPEC.applied()), extra=SETTLED, on=False), [Start]),
        (existing(extra={}, on=False), [Set, Start]),
        (existing(OWN.committed(SPEC.applied()), extra={"a.client": "true"}), [Stop, Set, Start]),
        (
            existing(
                OWN.committed({"vm": "desk", "settings": {**SETTLED, "a.old": "x"}}),
                {"a.client": "", "a.mode": "", "a.old": "y"},
                extra={**SETTLED, "a.old": "x"},
            ),
            [Stop, Set, Start],
        ),
    ],
)
def test_only_what_differs_takes_the_vm_down(state, expected):
    assert kinds(steps(SPEC, state)) == expected


def test_a_machine_of_this_site_that_is_off_drifts_once():
    """The virtual machine says so itself, and starts it first."""
    off = existing(OWN.committed(SPEC.applied()), extra=SETTLED, on=False)
    needs = {
        "vm": ResolvedRef(
            KEY, type("Spec", (), {"power": "on"})(), type("State", (), {"machine": off.machine})()
        )
    }
    assert list(steps(SPEC, off, needs)) == []


def test_what_the_file_names_no_more_is_as_it_was():
    state = existing(
        OWN.committed({}), {"a.client": "", "a.mode": "", "a.old": "y"}, extra={**SETTLED, "a.old": "x"}
    )
    _, found, _ = steps(SPEC, state)
    assert found.extra["a.old"] == "y"
    assert Mark.decode(found.extra[BEFORE]).applied == {"a.client": "", "a.mode": ""}


def test_a_vm_that_this_site_makes_is_set_once_it_exists():
    found = steps(SPEC, None, {"vm": ResolvedRef(KEY, object(), None)}, names=0)
    assert kinds(found) == [StopFirst, SetFirst, Start]
    assert {step.moid for step in found} == {Unknown(KEY, "machine")}


def test_one_that_this_site_starts_meanwhile_goes_down_as_announced():
    """It stands, off, as an earlier run was killed: by the time its turn comes it runs."""
    needs = {"vm": ResolvedRef(KEY, type("Spec", (), {"power": "on"})(), None)}
    first, found = steps(SPEC, existing(on=False), needs), steps(SPEC, existing(), needs)
    assert (kinds(first), kinds(found)) == ([SetFirst, Start], [Stop, Set, Start])
    assert max(step.disruption for step in found) == max(step.disruption for step in first)


@pytest.mark.parametrize(
    ("state", "needs", "names", "why"),
    [
        (None, {}, 0, "no VM desk"),
        (None, {}, 2, "2 VMs are called desk.*/dc/vm/a/desk, /dc/vm/b/desk; write the path"),
        (replace(existing(OWN), machine=replace(VM, moid="vm-2")), {}, 1, "the settings are those of desk"),
        (existing(Mark("theirs", "bitfusion_vm/desk")), {}, 1, "managed by another resource"),
        (existing(), {"vm": ResolvedRef(KEY, type("Spec", (), {"power": "off"})(), None)}, 1, "is to be off"),
    ],
)
def test_what_can_not_be_is_refused(state, needs, names, why):
    with pytest.raises(Refusal, match=why):
        steps(SPEC, state, needs, names)


@pytest.mark.parametrize("settings", [{}, {"bfinfra.mark": "x"}])
def test_our_own_notes_are_no_settings(settings):
    with pytest.raises(ValidationError):
        Spec(vm="desk", settings=settings)


def test_destroy_puts_back_what_was_there_and_takes_nothing_down():
    (step,) = steps(
        None, existing(OWN.committed(SPEC.applied()), {"a.client": "", "a.mode": "other"}, extra=SETTLED)
    )
    assert (type(step), step.extra) == (
        PutBack,
        {"a.client": "", "a.mode": "other", SETTINGS: "", BEFORE: ""},
    )


def test_somebody_elses_hand_is_drift_by_its_key(sandbox, tmp_path):
    site = yaml.safe_load(EXAMPLES["bitfusion_vm"].read_text())
    (path := tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    with administrator(sandbox) as si:
        vm = si.content.searchIndex.FindByInventoryPath("/dc/vm/desk")
        assert {o.key: o.value for o in vm.config.extraConfig}["example.bitfusion.client"] == "true"
        WaitForTask(
            vm.ReconfigVM_Task(
                vim.vm.ConfigSpec(
                    extraConfig=[vim.option.OptionValue(key="example.bitfusion.client", value="no")]
                )
            )
        )
    assert {(str(each.key), each.field) for each in drift(path, sandbox).found} == {
        ("bitfusion_vm/desk", "settings.example.bitfusion.client")
    }


CHANGED_FIELDS = [{"settings": {"example.bitfusion.client": "false"}}]
