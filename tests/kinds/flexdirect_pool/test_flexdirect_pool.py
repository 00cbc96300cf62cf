"""Lists of FlexDirect servers: which files they are, and that there is one default a host."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, on_machine

from bfinfra.kinds.machine import flexdirect_pool
from bfinfra.kinds.machine.flexdirect_pool import Spec
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "cpu-01", f"/etc/bitfusionio/{name}_servers.conf", "10.5.0.9\n")


@of_several("flexdirect_pool.hosts")
def test_the_default_is_written_twice_and_a_host_has_one():
    spec = Spec(servers=("t4",), hosts=("one", "two"))
    assert spec.files("T4") == ("T4_servers.conf",)
    assert [*spec.takes("T4")] == []
    default = Spec(servers=("t4",), hosts=("one", "two"), default=True)
    assert default.files("T4") == ("T4_servers.conf", "servers.conf")
    assert [each.field for each in default.takes("T4")] == ["hosts.0", "hosts.1"]


@of_several("flexdirect_pool.servers")
def test_a_list_has_every_machine_of_every_server_in_their_order():
    spec = Spec(servers=("v100", "t4"), hosts=("one",))
    addresses = {"a": "10.5.0.1", "b": "10.5.0.2", "c": "10.5.0.3"}
    groups = {"t4": ("a",), "v100": ("b", "c")}
    needs = {
        Key("flexdirect_host", name): SimpleNamespace(
            spec=SimpleNamespace(hosts=hosts, scheduler=SimpleNamespace(port=56001))
        )
        for name, hosts in groups.items()
    } | {
        Key("linux_host", name): SimpleNamespace(spec=SimpleNamespace(address=address))
        for name, address in addresses.items()
    }
    assert flexdirect_pool._addresses(spec, needs) == ("10.5.0.2:56001", "10.5.0.3:56001", "10.5.0.1:56001")


UNMANAGED = Entry(at="T4", plant=unmanaged, inside="a list holds lines only")
