"""The live state of a VM that a site makes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Annotated, Any

from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.machine.notes import IMPORTING, MARK, SECRETS
from bfinfra.model import resource
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

NAMES = uuid.uuid5(uuid.NAMESPACE_DNS, "bfinfra.io")


@dataclass(frozen=True, kw_only=True)
class MachineState(resource.State):
    """One VM. `networks`: the networks that it was given, whose port groups are deleted after it."""

    machine: Vm
    importing: bool = False
    """It was not made to its end."""
    networks: tuple[Annotated[str, Ref("port_group", optional=True)], ...] = ()

    @property
    def whole(self) -> Vm | None:
        """The VM; None while it is half made, so that it is made anew."""
        return None if self.importing else self.machine

    def last_known(self) -> str:
        """Return why its fields are last known values; "" if they are current."""
        return self.machine.last_known

    def out_of_service(self, spec: resource.Spec | None) -> str:
        """Return `is off` while it is, unless the site wants it off."""
        return "" if self.machine.on or getattr(spec, "power", "on") == "off" else "is off"

    @property
    def digests(self) -> Mapping[str, str]:
        """Property → salted digest of the secret that was written."""
        kept = Mark.decode(self.machine.extra.get(SECRETS))
        return (kept.applied if kept else None) or {}


def identity(site: str, address: str) -> str:
    """The instance UUID of a VM: the same on every run, different for every site and resource."""
    return str(uuid.uuid5(NAMES, f"{site}/{address}"))


def read(machine: Vm, adapters: str) -> dict[str, Any]:
    """The fields of a `MachineState`. A clone has the mark of its original, but another instance UUID: it
    counts as unmarked. `adapters`: the field of the site that lists them, or has them by name.
    """
    noted = Mark.decode(machine.extra.get(MARK))
    mark = noted.where(machine.instance_uuid) if noted else None
    copy = (
        f"the VM {machine.name} is a copy of {noted.address} of the site {noted.site}"
        if noted and mark is None
        else ""
    )
    given = ((mark.applied if mark else None) or {}).get(adapters) or ()
    listed = given.values() if isinstance(given, Mapping) else given
    return {
        "mark": mark,
        "copy": copy,
        "machine": machine,
        "importing": bool(machine.extra.get(IMPORTING)) and not copy,
        "networks": tuple(str(each["network"]) for each in listed if isinstance(each, Mapping)),
    }
