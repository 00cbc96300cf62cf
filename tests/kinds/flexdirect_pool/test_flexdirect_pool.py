"""Lists of FlexDirect servers: which files they are, and that there is one default a host."""

from __future__ import annotations

from pathlib import Path

from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, on_machine

from bfinfra.kinds.machine.flexdirect_pool import Spec
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


UNMANAGED = Entry(at="T4", plant=unmanaged, inside="a list holds lines only")
