"""The live state of a server, and the facts that decisions need."""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from bfinfra.backends.ova import Ova
from bfinfra.backends.vcenter.esxi import Room
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.backends.vcenter.places import Inventory
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty
from bfinfra.kinds.vcenter.gpu_host.state import VM_KEYS, VM_MARK
from bfinfra.model import resource
from bfinfra.model.errors import Problem
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

KEYS = (VM_MARK, *VM_KEYS)
MARK, SECRETS, IMPORTING, OVA, MMIO, MMIO_SIZE = KEYS
"""Keys of extraConfig: the mark; digests of write-only properties; which process imports; which appliance was
imported; the MMIO window.
"""
NAMES = uuid.uuid5(uuid.NAMESPACE_DNS, "bfinfra.io")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """One VM. `host`: the name of its host; `networks`: the networks that it was given, which are deleted
    after it.
    """

    machine: Vm
    host: Annotated[str, Ref("gpu_host")]
    importing: bool = False
    """Its import did not finish."""
    networks: tuple[Annotated[str, Ref("port_group", optional=True)], ...] = ()

    def answers_at(self) -> str:
        """The address that VMware Tools report."""
        return self.machine.ip

    def last_known(self) -> str:
        """Return why its fields are last known values; "" if they are current."""
        return self.machine.last_known

    def out_of_service(self, spec: resource.Spec | None) -> str:
        """Return `is off` while it is."""
        return "" if self.machine.on else "is off"

    @property
    def digests(self) -> Mapping[str, str]:
        """Property → salted digest of the secret that was written."""
        kept = Mark.decode(self.machine.extra.get(SECRETS))
        return (kept.applied if kept else None) or {}


@dataclass(frozen=True)
class BitfusionServerFacts:
    """The other facts that decisions need, besides the states.

    The inventory. OVAs by the file as written, or why they can't be read. Secrets by server and property.
    `vcenter`: its identity, if a server to create or change needs it. `noted`: server → what an existing one
    tells of the OVA that it was made from, if the file is not there. `gone`: ids of VMs that no longer exist,
    though an older state of a host may show them. `damaged`: server → what is wrong with the OVA that it must
    be made from. `rooms`: host → its memory, for hosts with a server to create or change. `sockets`: VM id →
    cores per socket, for those whose number of CPUs may change.
    """

    inventory: Inventory = field(default_factory=Inventory)
    ovas: Mapping[str, Ova | Problem] = field(default_factory=dict)
    secrets: Mapping[tuple[str, str], SecretProperty] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    damaged: Mapping[str, Problem] = field(default_factory=dict)
    noted: Mapping[str, Ova] = field(default_factory=dict)
    rooms: Mapping[str, Room] = field(default_factory=dict)
    vcenter: Identity | None = None
    sockets: Mapping[str, int] = field(default_factory=dict)


def identity(site: str, name: str) -> str:
    """The instance UUID of a server: the same on every run, different for every site and name."""
    return str(uuid.uuid5(NAMES, f"{site}/bitfusion_server/{name}"))


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
    """The state of one VM on the host of that name. A clone has the mark of its original, but another
    instance UUID: it counts as unmarked.
    """
    noted = Mark.decode(machine.extra.get(MARK))
    mark = noted.where(machine.instance_uuid) if noted else None
    copy = (
        f"the VM {machine.name} is a copy of {noted.address} of the site {noted.site}"
        if noted and mark is None
        else ""
    )
    return State(
        mark=mark,
        copy=copy,
        machine=machine,
        host=host,
        importing=bool(machine.extra.get(IMPORTING)) and not copy,
        networks=_networks(mark),
    )


def _networks(mark: Mark | None) -> tuple[str, ...]:
    given = (mark.applied or {}).get("networks") if mark else None
    return (
        tuple(str(each.get("network")) for each in given.values() if isinstance(each, Mapping))
        if isinstance(given, Mapping)
        else ()
    )
