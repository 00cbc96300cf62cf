"""Secret properties of a VM. bfinfra compares the digest of a secret with the one that it noted on the VM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bfinfra.backends import ova
from bfinfra.backends.ova import Property
from bfinfra.backends.vcenter.vm import Hardware
from bfinfra.kinds.vcenter.base.machine.notes import SECRETS
from bfinfra.model.awaited import Absent
from bfinfra.model.errors import BfinfraError
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.resource import State
from bfinfra.model.secret import Secret, digest, matches
from bfinfra.model.site import Site


@dataclass(frozen=True, slots=True)
class SecretProperty:
    """What is known of a secret property. `stale`: its value differs from the one that was written;
    `problem`: why it can't be used, "" if it can. `away`: the file to bring, if it doesn't exist yet; then a
    value that was written counts as unchanged.
    """

    stale: bool = False
    problem: str = ""
    away: Absent | None = None


def inspect(
    key: str, value: Secret, declared: Property | None, kept: Mapping[str, str] | None, pepper: str
) -> SecretProperty:
    """Return whether a secret changed and whether it fits its property; never its value. `declared`: None if
    nothing declares the property; `kept`: the digests noted on the VM, None for a new one.
    """
    try:
        plain = value.reveal()
    except BfinfraError as error:
        return SecretProperty(problem=str(error))
    stale = kept is not None and not matches(plain, kept.get(key, ""), pepper)
    return SecretProperty(stale, ova.check(declared, plain) if declared else "")


def revealed(values: Mapping[str, str | Secret]) -> dict[str, str]:
    """The values of properties with secrets revealed, as they are sent. Raises SecretMissing."""
    return {key: value.reveal() if isinstance(value, Secret) else value for key, value in values.items()}


def given(state: State | None, kept: Mapping[str, str] | None, key: str, value: Secret) -> bool:
    """Return whether a VM was given the secret that the site now names for a property. Reads the VM's notes
    only, not the secret. `kept`: the digests noted on the VM.
    """
    applied = (state.mark.applied if state and state.mark else None) or {}
    return (
        bool(kept) and key in (kept or {}) and (applied.get("properties") or {}).get(key) == value.reference()
    )


def digested(mark: Mark, digests: Mapping[str, str]) -> dict[str, str]:
    """The note with the digests of secret properties; empty if there are none."""
    return {SECRETS: mark.committed(digests).encode()} if digests else {}


def pepper_of(site: Site) -> str:
    """The pepper of a site's digests; "" without one."""
    return site.pepper.reveal() if site.pepper else ""


def sealed(
    hardware: Hardware,
    properties: Mapping[str, str | Secret],
    keep: Mapping[str, str],
    address: str,
    site: Site,
) -> Hardware:
    """The hardware with the values of properties, and the note of the secret ones' digests. `keep`: the
    digests of those that are not written again; `address`: the resource's.
    """
    if not properties:
        return hardware
    values = revealed(properties)
    fresh = {
        key: digest(values[key], None, pepper_of(site))
        for key, value in properties.items()
        if isinstance(value, Secret)
    }
    note = digested(Mark(site.name, address), {**keep, **fresh}) if fresh or keep else {}
    return replace(hardware, properties=values, extra={**hardware.extra, **note})
