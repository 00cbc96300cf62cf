"""The catalog of a namespace for machines: images with the libraries that they are from, classes, and other
owners' objects that have the names of a machine's parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.backends.words import safe
from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.base.offers import Offer
from bfinfra.kinds.supervisor.base.words import Object, at
from bfinfra.kinds.supervisor.service_vm.manifest import VERSIONS, Image
from bfinfra.model.errors import Forbidden, Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

REGISTRY = "imageregistry.vmware.com"
REGISTRY_VERSIONS = ("v1alpha1", "v1alpha2")
KINDS = ("VirtualMachineImage", "ClusterVirtualMachineImage")


@dataclass(frozen=True)
class Found:
    """An image: its object, the item and the library ("" if unknown) that it is from, and why it isn't
    ready, "" where it is.
    """

    image: Image
    item: str
    library: str
    missing: str = ""


@dataclass(frozen=True)
class ServiceVmFacts:
    """By supervisor namespace: `apis`: the version that machines are written in, "" for none; `images`: None
    where they aren't shown to us. By machine: `taken`: objects of others under its parts' names.
    `environment`: the classes, supervisors and capacity that machines need.
    """

    apis: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, Sequence[Found] | None] = field(default_factory=dict)
    offers: Mapping[str, Offer] = field(default_factory=dict)
    taken: Mapping[str, Sequence[str]] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)


def newest(versions: Sequence[str]) -> str:
    """The newest version of machines among those that are served; "" for none."""
    return next((each for each in VERSIONS if each in versions), "")


def images(client: ClusterClient, api: str, namespace: str) -> tuple[Found, ...] | None:
    """The images of a namespace, its own and those of the whole supervisor. Raises RemoteError."""
    libraries = _libraries(client, namespace)
    found: list[Found] = []
    known = False
    for kind in KINDS:
        try:
            listed = client.list(api, kind, namespace if kind == KINDS[0] else "")
        except (Forbidden, Missing):
            continue
        known = True
        found += [_found(kind, each, libraries) for each in listed]
    return tuple(found) if known else None


def _found(kind: str, obj: Object, libraries: Mapping[str, str]) -> Found:
    status, provider = at(obj, "status"), str(at(obj, "spec", "providerRef").get("name") or "")
    name = str(obj["metadata"]["name"])
    return Found((kind, name), str(status.get("name") or name), libraries.get(provider, ""), _missing(obj))


def _missing(obj: Object) -> str:
    for each in at(obj, "status").get("conditions") or ():
        if isinstance(each, dict) and each.get("type") == "Ready":
            if each.get("status") == "True":
                return ""
            return safe(each.get("message") or each.get("reason") or "it is not ready", 200)
    return "its status is not reported yet"


def _libraries(client: ClusterClient, namespace: str) -> dict[str, str]:
    """Object of a library's item → the library's name."""
    found: dict[str, str] = {}
    for scope, where in (("", namespace), ("Cluster", "")):
        listed = _first(client, f"{scope}ContentLibraryItem", where)
        if not listed:
            continue
        named = {
            str(each["metadata"]["name"]): str(at(each, "status").get("name") or "")
            for each in _first(client, f"{scope}ContentLibrary", where)
        }
        for each in listed:
            reference = str(at(each, "status", "contentLibraryRef").get("name") or "")
            reference = reference or str(at(each, "spec").get("libraryName") or "")
            found[str(each["metadata"]["name"])] = named.get(reference, "")
    return found


def _first(client: ClusterClient, kind: str, namespace: str) -> Sequence[Object]:
    """The objects of a kind, in the first version that is served; () where they aren't shown to us."""
    for version in REGISTRY_VERSIONS:
        try:
            return client.list(f"{REGISTRY}/{version}", kind, namespace)
        except Missing:
            continue
        except Forbidden:
            return ()
    return ()
