"""The common part of kinds on vCenter's VMs: the keys of bfinfra's notes, and the notes that one shared read
gets from every VM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.model.reading import Reading

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
    """Return whether a VM is a Bitfusion server, by the name of its product."""
    return "bitfusion" in origin.product.lower() and not origin.template
