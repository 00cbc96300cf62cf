"""Items of publishers, as libraries that follow them get them."""

from __future__ import annotations

import uuid
from typing import Any

from bfinfra.sandbox.inventory import Inventory


def source_of(library: dict[str, Any]) -> str:
    """The URL that a library follows; "" for a local one."""
    return str((library.get("subscription_info") or {}).get("subscription_url") or "")


def items_of(library: dict[str, Any], inventory: Inventory) -> dict[str, dict[str, Any]]:
    """The records of a subscribed library's items, by id; their files are transferred at their first use."""
    found = {}
    for name in inventory.world.published.get(source_of(library), {}):
        identity = str(uuid.uuid5(uuid.UUID(library["id"]), name))
        found[identity] = {
            "description": "",
            "type": "ovf",
            "name": name,
            "library_id": library["id"],
            "id": identity,
            "creation_time": library["creation_time"],
            "last_modified_time": library["last_modified_time"],
            "content_version": "1",
            "metadata_version": "1",
            "version": "1",
            "cached": False,
            "size": 0,
            "files": {},
        }
    return found
