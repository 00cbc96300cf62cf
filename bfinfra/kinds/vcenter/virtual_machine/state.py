"""The live state of a VM, and the facts that decisions need."""

from __future__ import annotations

import base64
import gzip
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated

from bfinfra.backends.vcenter.esxi import Room
from bfinfra.backends.vcenter.library_items import Declared, Item
from bfinfra.backends.vcenter.places import Inventory, Lookup
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.machine.notes import IMPORTING, MARK, SECRETS
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty
from bfinfra.model import resource
from bfinfra.model.awaited import Away
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

GUEST = {"user_data": "guestinfo.userdata", "meta_data": "guestinfo.metadata"}
KEYS = (MARK, IMPORTING, SECRETS, *GUEST.values(), *(f"{key}.encoding" for key in GUEST.values()))
ENCODING = "gzip+base64"
NAMES = uuid.uuid5(uuid.NAMESPACE_DNS, "bfinfra.io")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """One VM. `networks`: the networks that it was given, whose port groups are deleted after it."""

    machine: Vm
    importing: bool = False
    """Its deployment did not finish."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Property → salted digest of the secret that was written."""
    networks: tuple[Annotated[str, Ref("port_group", optional=True)], ...] = ()

    def last_known(self) -> str:
        """Return why its fields are last known values; "" if they are current."""
        return self.machine.last_known

    def out_of_service(self, spec: resource.Spec | None) -> str:
        """Return `is off` while it is, unless the site wants it off."""
        return "" if self.machine.on or getattr(spec, "power", "on") == "off" else "is off"


@dataclass(frozen=True)
class VirtualMachineFacts:
    """The other facts that decisions need, besides the states.

    The inventory; what each template's name or path leads to; items by library and name, each with its VM
    template; `namesakes`: the paths of VMs of a machine's name in other folders. `guests`:
    cloud-init's files by VM, encoded, or why they can't be read, without files that don't exist yet; `away`
    has the first of those. `declared`: the properties that OVF items let one set, by library and name.
    `secrets`: what is known of secret properties, by VM. `rooms`: what hosts have for VMs, by their ids,
    where one is to be made or changed. `sockets`: VM id → cores per socket, where the CPUs change.
    `reported`: the addresses of guests that Linux machines of the site are, by VM.
    """

    inventory: Inventory = field(default_factory=Inventory)
    templates: Mapping[str, Lookup[Vm]] = field(default_factory=dict)
    items: Mapping[tuple[str, str], tuple[Item, Vm | None]] = field(default_factory=dict)
    guests: Mapping[str, Mapping[str, str] | str] = field(default_factory=dict)
    declared: Mapping[tuple[str, str], Sequence[Declared]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, SecretProperty]] = field(default_factory=dict)
    away: Mapping[str, Away] = field(default_factory=dict)
    namesakes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rooms: Mapping[str, Room] = field(default_factory=dict)
    sockets: Mapping[str, int] = field(default_factory=dict)
    reported: Mapping[str, frozenset[str]] = field(default_factory=dict)


def identity(site: str, name: str) -> str:
    """The instance UUID of a VM: the same on every run, different for every site and name."""
    return str(uuid.uuid5(NAMES, f"{site}/virtual_machine/{name}"))


def read(machine: Vm) -> State:
    """The state of one VM. A clone has the mark of its original, but another instance UUID: it counts as
    unmarked.
    """
    noted = Mark.decode(machine.extra.get(MARK))
    mark = noted.where(machine.instance_uuid) if noted else None
    copy = (
        f"the VM {machine.name} is a copy of {noted.address} of the site {noted.site}"
        if noted and mark is None
        else ""
    )
    adapters = ((mark.applied if mark else None) or {}).get("adapters") or ()
    kept = Mark.decode(machine.extra.get(SECRETS))
    return State(
        mark=mark,
        copy=copy,
        digests=(kept.applied if kept else None) or {},
        machine=machine,
        importing=bool(machine.extra.get(IMPORTING)) and not copy,
        networks=tuple(str(each["network"]) for each in adapters),
    )


def encoded(text: bytes) -> str:
    """The text as cloud-init reads it from guestinfo; the result depends on the text only."""
    return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode()


def options(guest: Mapping[str, str]) -> dict[str, str]:
    """The keys of guestinfo with texts and encodings; "" removes a key."""
    return {
        name: value
        for key in GUEST.values()
        for name, value in ((key, guest.get(key, "")), (f"{key}.encoding", ENCODING if key in guest else ""))
    }
