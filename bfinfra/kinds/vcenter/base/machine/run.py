"""Runs a step on a VM that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.vm import Hardware, Relocation
from bfinfra.kinds.vcenter.base.machine.notes import IMPORTING
from bfinfra.kinds.vcenter.base.machine.secrets import sealed
from bfinfra.kinds.vcenter.base.machine.steps import (
    Delete,
    Discard,
    Move,
    Note,
    OnMachine,
    Relocate,
    Start,
    Stop,
    Write,
)
from bfinfra.model import process
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.machines import Machines


def run(machines: Machines, step: OnMachine, kind: str, site: Site) -> None:
    """Run one of the steps that all kinds of VMs have. Raises RemoteError."""
    match step:
        case Discard(moid=moid):
            discard(machines, moid)
        case Stop(moid=moid):
            machines.stop(moid)
        case Write(moid=moid, hardware=Hardware() as hardware):
            wanted = sealed(hardware, step.properties, step.keep, f"{kind}/{step.name}", site)
            machines.reconfigure(moid, wanted, version=step.version)
        case Move(moid=moid, folder=folder, pool=str() as pool):
            machines.move(moid, folder, pool)
        case Relocate(moid=moid, to=Relocation() as to):
            machines.relocate(moid, to)
        case Start(moid=moid):
            machines.power_on(moid)
        case Note(moid=moid, extra=extra):
            machines.reconfigure(
                moid, Hardware(extra=extra), "the note of what was applied", version=step.version
            )
        case Delete(moid=moid):
            _delete(machines, step)
        case _:
            raise AssertionError(step)


def _delete(machines: Machines, step: Delete) -> None:
    if step.importing:
        discard(machines, step.moid)
    if not step.importing or machines.read([step.moid], []):  # else its import took it along
        machines.stop(step.moid)
        machines.destroy(step.moid)


def discard(machines: Machines, moid: str) -> None:
    """Remove a half-made VM once nobody works on it. One that was finished meanwhile stays."""
    for found in machines.read([moid], [IMPORTING]):
        if who := found.extra.get(IMPORTING):
            machines.discard(moid, IMPORTING, cancel=process.mine(who) or process.ended(who))
