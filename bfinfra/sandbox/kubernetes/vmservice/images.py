"""The images that a namespace shows: one for each item of its content libraries. Their names tell nothing:
users know them by what their items are called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bfinfra.sandbox.kubernetes.objects import Object, condition

LISTENS = "sandbox.bfinfra.io/listens"
"""Annotation of an image: the ports that its machines listen on."""


@dataclass(frozen=True)
class Item:
    """An item of a content library. `listens`: the TCP ports that a machine of it listens on."""

    library: str
    library_id: str
    name: str
    id: str
    listens: tuple[int, ...] = ()


def images(namespace: str, items: Sequence[Item], when: str) -> Iterator[tuple[str, str, list[Object]]]:
    """Group, plural and objects of each kind."""
    registry = "imageregistry.vmware.com"
    ready = [condition("Ready", status=True, when=when, reason="Ready")]
    libraries = {each.library_id: each for each in items}
    yield (
        registry,
        "contentlibraries",
        [
            {
                "apiVersion": f"{registry}/v1alpha1",
                "kind": "ContentLibrary",
                "metadata": {"name": _named("cl", each.library), "namespace": namespace},
                "spec": {"uuid": each.library_id, "writable": False},
                "status": {"name": each.library, "conditions": ready},
            }
            for each in libraries.values()
        ],
    )
    yield (
        registry,
        "contentlibraryitems",
        [
            {
                "apiVersion": f"{registry}/v1alpha1",
                "kind": "ContentLibraryItem",
                "metadata": {"name": _named("clitem", f"{each.library}/{each.name}"), "namespace": namespace},
                "spec": {"uuid": each.id},
                "status": {
                    "name": each.name,
                    "type": "Ovf",
                    "contentLibraryRef": {"kind": "ContentLibrary", "name": _named("cl", each.library)},
                    "conditions": ready,
                },
            }
            for each in items
        ],
    )
    yield (
        "vmoperator.vmware.com",
        "virtualmachineimages",
        [
            {
                "apiVersion": "vmoperator.vmware.com/v1alpha3",
                "kind": "VirtualMachineImage",
                "metadata": {
                    "name": _named("vmi", f"{each.library}/{each.name}"),
                    "namespace": namespace,
                    "annotations": {LISTENS: ",".join(map(str, each.listens))},
                },
                "spec": {
                    "providerRef": {
                        "apiVersion": f"{registry}/v1alpha1",
                        "kind": "ContentLibraryItem",
                        "name": _named("clitem", f"{each.library}/{each.name}"),
                    }
                },
                "status": {"name": each.name, "type": "OVF", "conditions": ready},
            }
            for each in items
        ],
    )


def _named(prefix: str, identity: str) -> str:
    return f"{prefix}-{hashlib.sha256(identity.encode()).hexdigest()[:17]}"
