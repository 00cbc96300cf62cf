"""What kinds on Linux machines share."""

from __future__ import annotations

from dataclasses import dataclass

from bfinfra.kinds.machine.base import OnHosts, across
from bfinfra.kinds.machine.linux_host import kind as linux_host
from bfinfra.model.context import ResolvedRef
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key, edges
from bfinfra.model.ssh import HostTrust, LinuxMachine

DESK, BENCH = (
    LinuxMachine(name, "10.0.0.1", "root", HostTrust(sha256="SHA256:" + "A" * 43))
    for name in ("desk", "bench")
)


@dataclass(frozen=True)
class Installed:
    mark: Mark | None
    there: bool = True


def test_what_is_on_a_virtual_machine_of_the_site_refers_to_it_and_so_goes_first():
    needs = {
        key: ResolvedRef(key, None, linux_host.State(machine=machine, vm=vm))
        for key, machine, vm in (
            (Key("linux_host", "desk"), DESK, "vm-desk"),
            (Key("linux_host", "bench"), BENCH, ""),
        )
    }
    mark = Mark("site", "client/one")
    state = across(OnHosts[Installed], {"bench": Installed(None), "desk": Installed(mark)}, needs)
    assert (state.mark, state.machines) == (mark, {"bench": BENCH, "desk": DESK})
    assert {(edge.kinds, edge.name) for edge in edges(state)} == {
        (("linux_host",), "bench"),
        (("linux_host",), "desk"),
        (("virtual_machine",), "vm-desk"),
    }
