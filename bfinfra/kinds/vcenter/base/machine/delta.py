"""What differs of a VM, and the steps that change it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from bfinfra.backends.vcenter.vm import Hardware, Vm
from bfinfra.kinds.vcenter.base.machine.placement import Moves
from bfinfra.kinds.vcenter.base.machine.steps import OnMachine, Start, Stop, Write
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret


@dataclass(frozen=True, kw_only=True)
class Delta:
    """What is to change. `hardware`: None if nothing is written, Unknown while this site has still to make a
    part of it; a name that differs is written with it. `off`: it can only be written to a VM that is off;
    `on`: whether the VM has to run.
    """

    changes: tuple[Change, ...]
    """All of them, for people."""
    hardware: Hardware | Unknown | None
    properties: Mapping[str, str | Secret] = field(default_factory=dict)
    """Those to write."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Of the secret properties that the VM was given and that the site still has."""
    placed: Moves
    off: bool
    on: bool = True


def steps(name: str, machine: Vm, delta: Delta) -> Iterator[OnMachine]:
    """Shut down, reconfigure, move, power on; each only if it is needed."""
    off = delta.off or delta.placed.off
    keep = {key: old for key, old in delta.digests.items() if key not in delta.properties}
    found: list[OnMachine] = []
    if machine.on and (off or not delta.on):
        found.append(Stop(name=name, moid=machine.moid, back=delta.on))
    if (hardware := delta.hardware) is not None:
        if machine.name != name and isinstance(hardware, Hardware):
            hardware = replace(hardware, name=name)
        found.append(
            Write(
                name=name,
                moid=machine.moid,
                hardware=hardware,
                properties=delta.properties,
                keep=keep if delta.properties else {},
            )
        )
    found += delta.placed.steps
    if delta.on and (not machine.on or off):
        found.append(Start(name=name, moid=machine.moid))
    for step in found:
        yield replace(step, version=machine.version, changes=delta.changes)


def renamed(name: str, machine: Vm) -> tuple[Change, ...]:
    """The change of a VM's name, if somebody renamed it."""
    return (Change("name", machine.name, name),) if machine.name != name else ()


def powered(machine: Vm, *, on: bool) -> tuple[Change, ...]:
    """The change of a VM's power."""
    words = {True: "on", False: "off"}
    return () if machine.on == on else (Change("power", words[machine.on], words[on]),)
