"""Content libraries: local and subscribed. Source: com.vmware.content."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.published import items_of
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Inventory
    from bfinfra.sandbox.world import ContentLibrary

BACKING = {"type": ("DATASTORE", "OTHER"), "datastore_id?": str, "storage_uri?": str}
SUBSCRIPTION = {
    "subscription_url": str,
    "authentication_method?": ("BASIC", "NONE"),
    "automatic_sync_enabled?": bool,
    "on_demand?": bool,
    "ssl_thumbprint?": str,
    "ssl_certificate?": str,
    "user_name?": str,
    "password?": str,
}
COMMON = {"name": str, "description?": str, "storage_backings": [BACKING]}
LOCAL = {**COMMON, "type?": ("LOCAL",), "publish_info?": dict}
SUBSCRIBED = {**COMMON, "type?": ("SUBSCRIBED",), "subscription_info": SUBSCRIPTION}
FIND = {"name?": str, "type?": ("LOCAL", "SUBSCRIBED"), "storage_backing?": dict}
UPDATE = {
    "name?": str,
    "description?": str,
    "subscription_info?": {
        name if name.endswith("?") else f"{name}?": each for name, each in SUBSCRIPTION.items()
    },
}
PATHS = {"LOCAL": "local-library", "SUBSCRIBED": "subscribed-library"}


def library_of(inventory: Inventory, name: str, library: ContentLibrary) -> dict[str, Any]:
    """The record of a world's library."""
    datastore = inventory.datastore(library.datastore, inventory.datacenters()[0])
    kind = "SUBSCRIBED" if library.url else "LOCAL"
    spec: dict[str, Any] = {
        "name": name,
        "description": library.description,
        "storage_backings": [{"type": "DATASTORE", "datastore_id": datastore.moid if datastore else ""}],
    }
    if library.url:
        spec["subscription_info"] = {
            "subscription_url": library.url,
            "authentication_method": "NONE",
            "automatic_sync_enabled": True,
            "on_demand": True,
        }
    return _record(inventory.new_uuid(f"library {name}"), kind, spec, inventory)


def _record(identity: str, kind: str, spec: dict[str, Any], inventory: Inventory) -> dict[str, Any]:
    now = moment(inventory)
    found = {
        "description": "",
        **spec,
        "id": identity,
        "type": kind,
        "creation_time": now,
        "last_modified_time": now,
        "version": "1",
        "server_guid": inventory.world.vcenter.instance_uuid,
    }
    if kind == "LOCAL":
        return {
            **found,
            "publish_info": spec.get("publish_info") or {"authentication_method": "NONE", "published": False},
        }
    hidden = {name: value for name, value in spec["subscription_info"].items() if name != "password"}
    return {**found, "subscription_info": hidden, "last_sync_time": now}


def moment(inventory: Inventory) -> str:
    """Now, as the API writes it."""
    return (
        datetime.fromtimestamp(inventory.clock.now(), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


@route("GET", "/content/library")
def libraries(call: Call) -> Any:
    """Ids of all libraries."""
    return list(call.state.libraries)


@route("GET", "/content/local-library")
def local_libraries(call: Call) -> Any:
    """Ids of the local ones."""
    return _of_type(call, "LOCAL")


@route("GET", "/content/subscribed-library")
def subscribed_libraries(call: Call) -> Any:
    """Ids of the subscribed ones."""
    return _of_type(call, "SUBSCRIBED")


@route("POST", "/content/library", "find")
def find_libraries(call: Call) -> Any:
    """Ids of those with this name or type."""
    spec = check(call.spec, FIND)
    return [
        identity
        for identity, each in call.state.libraries.items()
        if each["name"].lower() == spec.get("name", each["name"]).lower()
        and each["type"] == spec.get("type", each["type"])
    ]


@route("GET", "/content/library/{library}")
@route("GET", "/content/local-library/{library}")
@route("GET", "/content/subscribed-library/{library}")
def library(call: Call, library: str) -> Any:
    """One library."""
    return _one(call, library)


@route("POST", "/content/local-library")
def create_local(call: Call) -> Any:
    """A new local library; its id."""
    return _create(call, "LOCAL", check(call.spec, LOCAL))


@route("POST", "/content/subscribed-library")
def create_subscribed(call: Call) -> Any:
    """A new subscribed library; its id."""
    return _create(call, "SUBSCRIBED", check(call.spec, SUBSCRIBED))


@route("PATCH", "/content/library/{library}")
@route("PATCH", "/content/local-library/{library}")
@route("PATCH", "/content/subscribed-library/{library}")
def update(call: Call, library: str) -> None:
    """Change name, description or subscription."""
    call.need(f"ContentLibrary.Update{_which(call)}Library", library)
    spec = check(call.spec, UPDATE)
    with call.state.lock:
        found = _one(call, library)
        if "subscription_info" in spec:
            spec["subscription_info"] = {**found.get("subscription_info", {}), **spec["subscription_info"]}
        found.update(spec)


@route("DELETE", "/content/local-library/{library}")
@route("DELETE", "/content/subscribed-library/{library}")
@route("DELETE", "/content/library/{library}")
def delete(call: Call, library: str) -> None:
    """Remove one. RESOURCE_IN_USE while a namespace names it."""
    call.need(f"ContentLibrary.Delete{_which(call)}Library", library)
    with call.state.lock:
        _one(call, library)
        users = [
            name
            for name, info in call.state.namespaces.items()
            if library in info.get("vm_service_spec", {}).get("content_libraries", [])
        ]
        if users:
            raise Refused("RESOURCE_IN_USE", f"The library is used by namespace {', '.join(users)}.")
        del call.state.libraries[library]
        for item in [each for each, info in call.state.items.items() if info["library_id"] == library]:
            del call.state.items[item]


@route("POST", "/content/subscribed-library/{library}", "sync")
def sync(call: Call, library: str) -> None:
    """Synchronise: the sandbox's libraries contain what the world file lists."""
    call.need("ContentLibrary.SyncLibrary", library)
    if _one(call, library)["type"] != "SUBSCRIBED":
        raise Refused("INVALID_ARGUMENT", "The library is not a subscribed one.")


def _create(call: Call, kind: str, spec: dict[str, Any]) -> str:
    call.need(
        "ContentLibrary.CreateLocalLibrary" if kind == "LOCAL" else "ContentLibrary.CreateSubscribedLibrary",
        spec["name"],
    )
    with call.state.lock:
        if any(each["name"] == spec["name"] for each in call.state.libraries.values()):
            raise Refused("ALREADY_EXISTS", f"A library with the name '{spec['name']}' already exists.")
        stores = {each.moid for each in call.inventory.datastores()}
        if (
            any(
                each.get("datastore_id") not in stores
                for each in spec["storage_backings"]
                if each["type"] == "DATASTORE"
            )
            or not spec["storage_backings"]
        ):
            raise Refused("INVALID_ARGUMENT", "spec.storage_backings: there is no such datastore")
        identity = str(uuid.uuid4())
        for store in spec["storage_backings"]:
            call.need("Datastore.AllocateSpace", spec["name"], store.get("datastore_id"))
        made = call.state.libraries[identity] = _record(identity, kind, spec, call.inventory)
        call.state.items |= items_of(made, call.inventory)
    return identity


def _which(call: Call) -> str:
    """The names by which privileges call the libraries of a path."""
    return next((kind.capitalize() for kind, part in PATHS.items() if f"/{part}/" in call.request.path), "")


def _of_type(call: Call, kind: str) -> list[str]:
    return [identity for identity, each in call.state.libraries.items() if each["type"] == kind]


def _one(call: Call, identity: str) -> dict[str, Any]:
    found = call.state.libraries.get(identity)
    wanted = next((kind for kind, part in PATHS.items() if f"/{part}/" in call.request.path), None)
    if found is None or wanted not in (None, found["type"]):
        raise missing("The library", identity)
    return found
