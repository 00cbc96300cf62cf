"""What VMware Tools report of guests."""

from __future__ import annotations

from collections.abc import Iterable

from pyVmomi import vim

from bfinfra.backends.vcenter import properties
from bfinfra.backends.vcenter.properties import Row


def addresses(content: vim.ServiceInstanceContent, moids: Iterable[str]) -> dict[str, frozenset[str]]:
    """The addresses of each VM's guest; none if Tools don't report any. Deleted ones are left out."""

    def found(row: Row) -> tuple[str, frozenset[str]]:
        return row.moid, frozenset(ip for nic in row["guest.net"] or () for ip in nic.ipAddress or ())

    return dict(properties.of(content, vim.VirtualMachine, moids, ["guest.net"], found))
