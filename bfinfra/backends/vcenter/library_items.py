"""Items of content libraries that can be deployed: an OVF, or a VM template. Source: com.vmware.content,
com.vmware.vcenter.ovf.LibraryItem, com.vmware.vcenter.vm_template.LibraryItems (vmware-vcenter 9.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from bfinfra.model.errors import Malformed
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

LIBRARIES = "/api/content/library"
ITEMS = "/api/content/library/item"
OVF, TEMPLATE = "ovf", "vm-template"


@dataclass(frozen=True, slots=True)
class Item:
    """`type`: as the library has it (ovf, vm-template, iso); `template`: id of a vm-template item's VM
    template, "" for others.
    """

    id: str
    type: str
    template: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """A property of an OVF item that may be set: its key, `[class.]id[.instance]`, and its OVF type."""

    key: str
    type: str


class LibraryItems:
    """Searches the items of one vCenter's libraries by name. Raises RemoteError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def find(self, library: str, name: str) -> Item | None:
        """The item with this name in the library with this name, or None."""
        for home in self._ids(LIBRARIES, {"name": library}):
            for identity in self._ids(ITEMS, {"library_id": home, "name": name}):
                return self._item(identity)
        return None

    def declared(self, item: str, pool: str) -> tuple[Declared, ...]:
        """The properties of an OVF item that may be set when it is deployed to this resource pool."""
        found = self._rest.post(
            f"/api/vcenter/ovf/library-item/{quote(item)}",
            {"target": {"resource_pool_id": pool}},
            params={"action": "filter"},
        )
        try:
            listed = [
                each
                for params in found.get("additional_params") or ()
                if params.get("type") == "PropertyParams"
                for each in params.get("properties") or ()
            ]
            return tuple(
                Declared(
                    ".".join(filter(None, map(each.get, ("class_id", "id", "instance_id")))),
                    str(each.get("type") or "string"),
                )
                for each in listed
            )
        except (AttributeError, TypeError):
            raise Malformed(
                "the properties of an item of a content library can't be read",
                server=self._rest.server,
                why="no list of properties in it",
            ) from None

    def _item(self, identity: str) -> Item:
        try:
            sort = str(self._rest.get(f"{ITEMS}/{quote(identity)}")["type"])
            held = (
                self._rest.get(f"/api/vcenter/vm-template/library-items/{quote(identity)}")
                if sort == TEMPLATE
                else None
            )
            return Item(identity, sort, str(held["vm_template"]) if held else "")
        except (KeyError, TypeError):
            raise Malformed(
                "an item of a content library can't be read",
                server=self._rest.server,
                why="no type, or no template in it",
            ) from None

    def _ids(self, path: str, wanted: dict[str, str]) -> list[str]:
        found = self._rest.post(path, wanted, params={"action": "find"})
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise Malformed(
                "the content libraries can't be searched", server=self._rest.server, why="no list of ids"
            )
        return found
