"""Compares the addresses of Linux machines with what VMware Tools report of the VMs that they are. Pure."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator, Mapping

from bfinfra.kinds.vcenter.virtual_machine.state import State
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

NAME = "virtual_machine"


def asked(site: Specs, states: Mapping[str, State]) -> dict[str, str]:
    """The ids of the VMs to ask, by name: those that run and that a Linux machine with an IP address is."""
    named = {spec.vm for key, spec in site.items() if key.kind == "linux_host" and _ip(spec.address)}
    return {
        name: state.machine.moid
        for name, state in states.items()
        if name in named and state.machine.on and state.machine.tools
    }


def conflicts(wanted: Specs, reported: Mapping[str, frozenset[str]]) -> Iterator[Conflict]:
    """Linux machines whose address their VM doesn't have. `reported`: the addresses by VM."""
    for key, spec in wanted.items():
        if key.kind != "linux_host" or not spec.vm or not (own := _ip(spec.address)):
            continue
        there = sorted(filter(None, map(_ip, reported.get(spec.vm, ()))))
        if there and own not in there:
            yield Conflict(
                Spot(key, "address"),
                f"the VM {spec.vm} doesn't have the address {own}",
                (Spot(Key(NAME, spec.vm)),),
                why=f"its VMware Tools report {', '.join(there)}",
                next="correct the address, or the guest's network",
                stops=False,
            )


def _ip(text: str) -> str:
    """The address in its usual form; "" for a name."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(text))
    return ""
