"""The live state of a server, and the facts that decisions need."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from bfinfra.backends.ova import Ova
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.backends.vcenter.places import Inventory
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.machine.checks import Seen
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty
from bfinfra.kinds.vcenter.base.machine.state import MachineState
from bfinfra.kinds.vcenter.base.machine.state import read as noted
from bfinfra.kinds.vcenter.gpu_host.state import VM_KEYS, VM_MARK
from bfinfra.model.errors import Problem
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

KIND = "bitfusion_server"
KEYS = (VM_MARK, *VM_KEYS)
MARK, SECRETS, IMPORTING, OVA, MMIO, MMIO_SIZE = KEYS
"""Keys of extraConfig: the mark; digests of write-only properties; which process imports; which appliance was
imported; the MMIO window.
"""


@dataclass(frozen=True, kw_only=True)
class State(MachineState):
    """One VM. `host`: the name of its host."""

    host: Annotated[str, Ref("gpu_host")]

    def answers_at(self) -> str:
        """The address that VMware Tools report."""
        return self.machine.ip


@dataclass(frozen=True)
class BitfusionServerFacts:
    """The other facts that decisions need, besides the states.

    The inventory. OVAs by the file as written, or why they can't be read. Secrets by server and property.
    `vcenter`: its identity, if a server to create or change needs it. `noted`: server → what an existing one
    tells of the OVA that it was made from, if the file is not there. `gone`: ids of VMs that no longer exist,
    though an older state of a host may show them. `damaged`: server → what is wrong with the OVA that it must
    be made from. `seen`: of hosts with a server to create or change.
    """

    inventory: Inventory = field(default_factory=Inventory)
    ovas: Mapping[str, Ova | Problem] = field(default_factory=dict)
    secrets: Mapping[tuple[str, str], SecretProperty] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    damaged: Mapping[str, Problem] = field(default_factory=dict)
    noted: Mapping[str, Ova] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    vcenter: Identity | None = None


def release(package: Ova) -> str:
    """The identity of an appliance: a digest of its descriptor and of its manifest, which covers every
    disk.
    """
    return _digest(package.descriptor, tuple(sorted(package.manifest.items())))


@functools.lru_cache(maxsize=16)
def _digest(descriptor: str, files: tuple[tuple[str, tuple[str, str]], ...]) -> str:
    """Cached: the servers of one appliance share it."""
    manifest = "".join(f"{file} {algorithm} {value}\n" for file, (algorithm, value) in files)
    return hashlib.sha256((descriptor + manifest).encode()).hexdigest()


def read(machine: Vm, host: str) -> State:
    """The state of one VM on the host of that name."""
    return State(**noted(machine, "networks"), host=host)
