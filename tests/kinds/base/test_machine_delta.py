"""The steps that change a VM: it is shut down only if it must be, and runs again after them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kinds.base.test_machine_placement import HERE

from bfinfra.backends.vcenter.vm import Hardware, Relocation
from bfinfra.kinds.vcenter.base.machine.delta import Delta, powered, renamed, steps
from bfinfra.kinds.vcenter.base.machine.placement import Moves
from bfinfra.kinds.vcenter.base.machine.steps import OnMachine, Relocate, Start, Stop, Write
from bfinfra.model.compare import Change
from bfinfra.model.secret import Secret

ON, OFF = replace(HERE, on=True, version="7"), replace(HERE, on=False, version="7")
CHANGES = (Change("cpus", 2, 4),)
HARDWARE = Hardware(cpus=4)
MOVE = Relocate(name="w1", moid="vm-1", where="esx2", to=Relocation(host="h2"))
HOT, COLD = Moves(steps=(MOVE,)), Moves(steps=(MOVE,), off=True)


def delta(**fields: Any) -> Delta:
    return Delta(**{"changes": CHANGES, "hardware": HARDWARE, "placed": Moves(), "off": False, **fields})


@pytest.mark.parametrize(
    ("machine", "fields", "kinds"),
    [
        (ON, {}, [Write]),
        (ON, {"off": True}, [Stop, Write, Start]),
        (OFF, {"off": True}, [Write, Start]),
        (OFF, {}, [Write, Start]),
        (ON, {"hardware": None}, []),
        (OFF, {"hardware": None}, [Start]),
        (ON, {"placed": HOT}, [Write, Relocate]),
        (ON, {"placed": COLD}, [Stop, Write, Relocate, Start]),
        (ON, {"placed": COLD, "hardware": None}, [Stop, Relocate, Start]),
        (ON, {"on": False}, [Stop, Write]),
        (OFF, {"on": False, "off": True}, [Write]),
    ],
)
def test_a_machine_is_stopped_written_moved_and_started(machine: Any, fields: Any, kinds: Any) -> None:
    found = [*steps("w1", machine, delta(**fields))]
    assert [type(each) for each in found] == kinds
    assert {(each.name, each.moid, each.version, each.changes) for each in found} <= {
        ("w1", "vm-1", "7", CHANGES)
    }
    assert all(each.to == MOVE.to for each in found if isinstance(each, Relocate))
    assert all(each.hardware == HARDWARE for each in found if isinstance(each, Write))


@pytest.mark.parametrize("on", [True, False])
def test_a_machine_that_shall_be_off_is_not_started_again_when_a_change_is_refused(on: bool) -> None:
    stop = next(each for each in steps("w1", ON, delta(off=True, on=on)) if isinstance(each, Stop))
    assert stop.way_back == (Start(name="w1", moid="vm-1") if on else None)


def written(**properties: Any) -> OnMachine:
    (found,) = steps("w1", ON, delta(properties=properties, digests={"a": "old", "b": "old"}))
    return found


def test_secrets_that_are_not_written_again_keep_their_digests() -> None:
    secret = Secret("env", "A")
    found = written(a=secret)
    assert isinstance(found, Write)
    assert (found.properties, found.keep) == ({"a": secret}, {"b": "old"})
    found = written()
    assert isinstance(found, Write)
    assert (found.properties, found.keep) == ({}, {})


def test_a_name_that_differs_is_written_with_the_hardware() -> None:
    (found,) = steps("w2", ON, delta())
    assert isinstance(found, Write)
    assert found.hardware == Hardware(cpus=4, name="w2")


def test_name_and_power_are_changes_only_where_they_differ() -> None:
    assert renamed("w1", ON) == powered(ON, on=True) == powered(OFF, on=False) == ()
    assert renamed("w2", ON) == (Change("name", "w1", "w2"),)
    assert powered(ON, on=False) == (Change("power", "on", "off"),)
    assert powered(OFF, on=True) == (Change("power", "off", "on"),)
