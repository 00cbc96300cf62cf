"""The images that a namespace shows: one for each item of its content libraries. Their names are generated:
users find them by the names of their items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bfinfra.sandbox.kubernetes.objects import Object, condition

LISTENS = "sandbox.bfinfra.io/listens"
"""Annotation of an image: the ports that its machines listen on."""
REGISTRY, MACHINES = "imageregistry.vmware.com", "vmoperator.vmware.com"


@dataclass(frozen=True)
class Item:
    """An item of a content library. `listens`: the TCP ports that a machine of it listens on."""

    library: str
    library_id: str
    name: str
    id: str
    listens: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """Library and item."""
        return f"{self.library}/{self.name}"


def images(namespace: str, items: Sequence[Item], when: str) -> Iterator[tuple[str, str, list[Object]]]:
    """Group, plural and objects of each kind. `when`: since when they are ready."""
    ready = [condition("Ready", status=True, when=when, reason="Ready")]
    libraries = {each.library: each for each in items}.values()
    shown = (
        (REGISTRY, "contentlibraries", [_library(each) for each in libraries]),
        (REGISTRY, "contentlibraryitems", [_item(each) for each in items]),
        (MACHINES, "virtualmachineimages", [_image(each) for each in items]),
    )
    for group, plural, objects in shown:
        for each in objects:
            each["metadata"]["namespace"] = namespace
            each["status"]["conditions"] = ready
        yield group, plural, objects


def _library(item: Item) -> Object:
    return {
        "apiVersion": f"{REGISTRY}/v1alpha1",
        "kind": "ContentLibrary",
        "metadata": {"name": _named("cl", item.library)},
        "spec": {"uuid": item.library_id, "writable": False},
        "status": {"name": item.library},
    }


def _item(item: Item) -> Object:
    library = {"kind": "ContentLibrary", "name": _named("cl", item.library)}
    return {
        "apiVersion": f"{REGISTRY}/v1alpha1",
        "kind": "ContentLibraryItem",
        "metadata": {"name": _named("clitem", item.path)},
        "spec": {"uuid": item.id},
        "status": {"name": item.name, "type": "Ovf", "contentLibraryRef": library},
    }


def _image(item: Item) -> Object:
    provider = {
        "apiVersion": f"{REGISTRY}/v1alpha1",
        "kind": "ContentLibraryItem",
        "name": _named("clitem", item.path),
    }
    return {
        "apiVersion": f"{MACHINES}/v1alpha3",
        "kind": "VirtualMachineImage",
        "metadata": {
            "name": _named("vmi", item.path),
            "annotations": {LISTENS: ",".join(map(str, item.listens))},
        },
        "spec": {"providerRef": provider},
        "status": {"name": item.name, "type": "OVF"},
    }


def _named(prefix: str, identity: str) -> str:
    return f"{prefix}-{hashlib.sha256(identity.encode()).hexdigest()[:17]}"
