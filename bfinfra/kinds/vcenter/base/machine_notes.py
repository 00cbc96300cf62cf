"""What kinds on vCenter's machines share: the keys of bfinfra's notes, and those that are read of every
machine, so that all of them share one read.
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
"""`IMPORTING`: who makes it of several parts, until it is whole."""
OF_ALL = (MARK, SECRETS, SETTINGS)
"""The mark, the digests of a server's secrets, the mark of what is set for the Bitfusion plug-in."""
MARKS: Reading[list[Brief]] = Reading("VirtualMachine", ("name", "parent", *OF_ALL))
"""All machines with those notes."""


def appliance(origin: Origin) -> bool:
    """Whether a VM is a Bitfusion server, as its product is called."""
    return "bitfusion" in origin.product.lower() and not origin.template


def revealed(values: Mapping[str, str | Secret]) -> dict[str, str]:
    """Properties as they are sent. SecretMissing."""
    return {key: value.reveal() if isinstance(value, Secret) else value for key, value in values.items()}


def given(state: State | None, kept: Mapping[str, str] | None, key: str, value: Secret) -> bool:
    """Whether a machine was given what the file names as the value of a property, by its notes alone. `kept`:
    the digests on it.
    """
    applied = (state.mark.applied if state and state.mark else None) or {}
    return (
        bool(kept) and key in (kept or {}) and (applied.get("properties") or {}).get(key) == value.reference()
    )


def digested(mark: Mark, digests: Mapping[str, str]) -> dict[str, str]:
    """The note of digests of secret properties; nothing where there are none."""
    return {SECRETS: mark.committed(digests).encode()} if digests else {}
