"""What kinds on vCenter's VMs share: the keys of bfinfra's notes, and the notes that one shared read gets
from every VM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfinfra.model.mark import Mark
from bfinfra.model.reading import Reading
from bfinfra.model.resource import State
from bfinfra.model.secret import Secret

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.vm import Brief, Origin

MARK, SECRETS, SETTINGS, IMPORTING = (
    "bfinfra.mark",
    "bfinfra.secrets",
    "bfinfra.bitfusion",
    "bfinfra.importing",
)
"""`IMPORTING`: the process that creates the VM; the key is removed when the VM is complete."""
OF_ALL = (MARK, SECRETS, SETTINGS)
"""The mark, the digests of the secrets that a VM was given, and the mark of `bitfusion_vm`."""
MARKS: Reading[list[Brief]] = Reading("VirtualMachine", ("name", "parent", *OF_ALL))
"""All VMs with those notes."""


def appliance(origin: Origin) -> bool:
    """Whether a VM is a Bitfusion server, by the name of its product."""
    return "bitfusion" in origin.product.lower() and not origin.template


def revealed(values: Mapping[str, str | Secret]) -> dict[str, str]:
    """The values of properties with secrets revealed, as they are sent. Raises SecretMissing."""
    return {key: value.reveal() if isinstance(value, Secret) else value for key, value in values.items()}


def given(state: State | None, kept: Mapping[str, str] | None, key: str, value: Secret) -> bool:
    """Whether a VM was given the secret that the site now names for a property. Reads the VM's notes only,
    not the secret. `kept`: the digests noted on the VM.
    """
    applied = (state.mark.applied if state and state.mark else None) or {}
    return (
        bool(kept) and key in (kept or {}) and (applied.get("properties") or {}).get(key) == value.reference()
    )


def digested(mark: Mark, digests: Mapping[str, str]) -> dict[str, str]:
    """The note with the digests of secret properties; empty if there are none."""
    return {SECRETS: mark.committed(digests).encode()} if digests else {}
