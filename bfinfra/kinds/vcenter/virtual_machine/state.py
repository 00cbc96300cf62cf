"""The live state of a VM, and the facts that decisions need."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import field

from bfinfra.backends.vcenter.library_items import Declared, Item
from bfinfra.backends.vcenter.places import Inventory, Lookup
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.machine.checks import Seen
from bfinfra.kinds.vcenter.base.machine.notes import IMPORTING, MARK, SECRETS
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty
from bfinfra.kinds.vcenter.base.machine.state import MachineState
from bfinfra.kinds.vcenter.base.machine.state import read as noted
from bfinfra.model.awaited import Away
from bfinfra.model.records import dataclass

GUEST = {"user_data": "guestinfo.userdata", "meta_data": "guestinfo.metadata"}
KEYS = (MARK, IMPORTING, SECRETS, *GUEST.values(), *(f"{key}.encoding" for key in GUEST.values()))
ENCODING = "gzip+base64"


@dataclass(frozen=True, kw_only=True)
class State(MachineState):
    """One VM, cloned or deployed."""


@dataclass(frozen=True)
class VirtualMachineFacts:
    """The other facts that decisions need, besides the states.

    The inventory; what each template's name or path leads to; items by library and name, each with its VM
    template; `namesakes`: the paths of VMs of a machine's name in other folders. `guests`:
    cloud-init's files by VM, encoded, or why they can't be read, without files that don't exist yet; `away`
    has the first of those. `declared`: the properties that OVF items let one set, by library and name.
    `secrets`: what is known of secret properties, by VM. `seen`: of hosts that may take one. `reported`: the
    addresses of guests that Linux machines of the site are, by VM.
    """

    inventory: Inventory = field(default_factory=Inventory)
    templates: Mapping[str, Lookup[Vm]] = field(default_factory=dict)
    items: Mapping[tuple[str, str], tuple[Item, Vm | None]] = field(default_factory=dict)
    guests: Mapping[str, Mapping[str, str] | str] = field(default_factory=dict)
    declared: Mapping[tuple[str, str], Sequence[Declared]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, SecretProperty]] = field(default_factory=dict)
    away: Mapping[str, Away] = field(default_factory=dict)
    namesakes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    reported: Mapping[str, frozenset[str]] = field(default_factory=dict)


def read(machine: Vm) -> State:
    """The state of one VM."""
    return State(**noted(machine, "adapters"))


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
