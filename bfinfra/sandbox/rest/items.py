"""Items of content libraries, and the update sessions that fill them. Source:
com.vmware.content.library.item.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.rest.content import moment
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import Info, RestState
    from bfinfra.sandbox.sessions import Sessions

HEADER = "vmware-api-session-id"
ALGORITHMS = ("SHA1", "MD5", "SHA256", "SHA512")
FIND = {"name?": str, "library_id?": str, "type?": str, "cached?": bool, "source_id?": str}
CREATE = {"library_id": str, "name": str, "type?": str, "description?": str}
UPDATE = {"name?": str, "description?": str, "type?": str}
SESSION = {
    "library_item_id": str,
    "library_item_content_version?": str,
    "client_progress?": int,
    "warning_behavior?": list,
}
ADD = {
    "name": str,
    "source_type": ("PUSH",),
    "size?": int,
    "checksum_info?": {"algorithm?": ALGORITHMS, "checksum": str},
}
BLOCK = 1 << 20
LONGEST_NAME = 80
SESSIONS = "/content/library/item/update-session"
KEPT_TEXT = 4 << 20  # bytes of a descriptor; of disks only sizes and digests are kept


@route("POST", SESSIONS)
def open_session(call: Call) -> Any:
    """A new update session; its id."""
    spec = check(call.spec, SESSION)
    with call.state.lock:
        found = _item(call.state, spec["library_item_id"])
        call.need("ContentLibrary.UpdateSession", found["name"])
        identity = str(uuid.uuid4())
        call.state.sessions[identity] = {
            "id": identity,
            "library_item_id": found["id"],
            "library_item_content_version": found["content_version"],
            "state": "ACTIVE",
            "client_progress": spec.get("client_progress", 0),
            "expiration_time": moment(call.inventory),
            "files": {},
        }
    return identity


@route("GET", SESSIONS)
def sessions(call: Call) -> Any:
    """Ids of the sessions, of one item or all."""
    wanted = call.query.get("library_item_id", [None])[0]
    return [each["id"] for each in call.state.sessions.values() if wanted in (None, each["library_item_id"])]


@route("GET", SESSIONS + "/{session}")
def session(call: Call, session: str) -> Any:
    """One session, without its files."""
    return {name: value for name, value in _session(call.state, session).items() if name != "files"}


@route("POST", SESSIONS + "/{session}", "keep-alive")
def keep_alive(call: Call, session: str) -> None:
    """A sign of life."""
    _active(call.state, session)["client_progress"] = check(call.spec or {}, {"client_progress?": int}).get(
        "client_progress", 0
    )


@route("POST", SESSIONS + "/{session}", "cancel")
def cancel(call: Call, session: str) -> None:
    """Give up."""
    _active(call.state, session)["state"] = "CANCELED"


@route("DELETE", SESSIONS + "/{session}")
def remove_session(call: Call, session: str) -> None:
    """Forget it. NOT_ALLOWED_IN_CURRENT_STATE while it is active."""
    if _session(call.state, session)["state"] == "ACTIVE":
        raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", "The session is active.")
    del call.state.sessions[session]


@route("POST", SESSIONS + "/{session}/file")
def add_file(call: Call, session: str) -> Any:
    """Announce a file; returns where to upload it."""
    spec = check(call.spec, ADD)
    with call.state.lock:
        found = _active(call.state, session)
        uri = f"https://{call.request.address}/cls/data/{session}/{spec['name']}"
        found["files"][spec["name"]] = {
            **spec,
            "status": "WAITING_FOR_TRANSFER",
            "bytes_transferred": 0,
            "upload_endpoint": {"uri": uri},
        }
        return found["files"][spec["name"]]


@route("GET", SESSIONS + "/{session}/file")
def session_files(call: Call, session: str) -> Any:
    """Return the result of each file."""
    return [
        {name: value for name, value in each.items() if name not in ("digests", "text")}
        for each in _session(call.state, session)["files"].values()
    ]


@route("POST", SESSIONS + "/{session}", "complete")
def complete(call: Call, session: str) -> None:
    """Take what came into the item. The session ends in ERROR where a file is missing, short or another
    one.
    """
    with call.state.lock:
        found = _active(call.state, session)
        if wrong := next(
            filter(None, map(_wrong, found["files"].values())), "" if found["files"] else "no file came"
        ):
            found["state"], found["error_message"] = (
                "ERROR",
                {"id": "com.vmware.vdcs.cls-main", "default_message": wrong, "args": []},
            )
            return
        item = _item(call.state, found["library_item_id"])
        item["files"] |= {name: {**each, "version": "1"} for name, each in found["files"].items()}
        item |= {
            "content_version": str(int(item["content_version"]) + 1),
            "version": str(int(item["version"]) + 1),
            "cached": True,
            "size": sum(each["bytes_transferred"] for each in item["files"].values()),
        }
        found["state"] = "DONE"


@route("GET", "/content/library/item")
def items(call: Call) -> Any:
    """Ids of those in a library."""
    wanted = call.query.get("library_id", [""])[0]
    if wanted not in call.state.libraries:
        raise missing("The library", wanted)
    return [each["id"] for each in call.state.items.values() if each["library_id"] == wanted]


@route("POST", "/content/library/item", "find")
def find(call: Call) -> Any:
    """Ids of those that fit."""
    spec = check(call.spec, FIND)
    return [
        each["id"]
        for each in call.state.items.values()
        if all(str(each.get(name)).lower() == str(value).lower() for name, value in spec.items())
    ]


@route("POST", "/content/library/item")
def create(call: Call) -> Any:
    """A new item, empty; its id."""
    spec = check(call.spec, CREATE)
    call.need("ContentLibrary.AddLibraryItem", spec["name"])
    with call.state.lock:
        if spec["library_id"] not in call.state.libraries:
            raise missing("The library", spec["library_id"])
        if len(spec["name"]) > LONGEST_NAME:
            raise Refused("INVALID_ARGUMENT", f"The name has more than {LONGEST_NAME} characters.")
        if any(
            each["name"] == spec["name"] and each["library_id"] == spec["library_id"]
            for each in call.state.items.values()
        ):
            raise Refused("ALREADY_EXISTS", f"An item with the name '{spec['name']}' already exists.")
        identity, now = str(uuid.uuid4()), moment(call.inventory)
        call.state.items[identity] = {
            "description": "",
            "type": "",
            **spec,
            "id": identity,
            "creation_time": now,
            "last_modified_time": now,
            "content_version": "0",
            "metadata_version": "1",
            "version": "1",
            "cached": False,
            "size": 0,
            "files": {},
        }
    return identity


@route("GET", "/content/library/item/{item}")
def item(call: Call, item: str) -> Any:
    """One item, without its files."""
    return {
        name: value for name, value in _item(call.state, item).items() if name not in ("files", "template")
    }


@route("PATCH", "/content/library/item/{item}")
def update(call: Call, item: str) -> None:
    """Change name, description or type."""
    call.need("ContentLibrary.UpdateLibraryItem", item)
    _item(call.state, item).update(check(call.spec, UPDATE))


@route("DELETE", "/content/library/item/{item}")
def delete(call: Call, item: str) -> None:
    """Remove it with its files."""
    call.need("ContentLibrary.DeleteLibraryItem", item)
    _item(call.state, item)
    del call.state.items[item]


@route("GET", "/content/library/item/{item}/file")
def files(call: Call, item: str) -> Any:
    """Its files."""
    found = _item(call.state, item)["files"].values()
    shown = (
        {
            "name": each["name"],
            "size": each["bytes_transferred"],
            "version": each["version"],
            "cached": True,
            "checksum_info": each.get("checksum_info"),
        }
        for each in found
    )
    return [{name: value for name, value in each.items() if value is not None} for each in shown]


def content_handler(state: RestState, sessions: Sessions) -> Handler:
    """Return the handler that takes the files of an update session: PUT /cls/data/<session>/<file>."""

    def handler(request: Request) -> Response:
        parts = request.path.split("/")
        if sessions.find(request.headers.get(HEADER)) is None:
            return Response(401, b"Authentication required.", {"content-type": "text/plain"})
        found = state.sessions.get(parts[3], {}).get("files", {}).get(parts[4]) if len(parts) == 5 else None
        if found is None or request.method != "PUT":
            return Response(
                404, f"no file is awaited at {request.path}".encode(), {"content-type": "text/plain"}
            )
        _take(request, found)
        return Response(200)

    return handler


def _take(request: Request, file: Info) -> None:
    digests, size, text = [hashlib.new(name.lower(), usedforsecurity=False) for name in ALGORITHMS], 0, b""
    while block := request.body.read(BLOCK):
        for each in digests:
            each.update(block)
        size += len(block)
        if file["name"].endswith(".ovf") and size <= KEPT_TEXT:
            text += block
    found = {name: each.hexdigest() for name, each in zip(ALGORITHMS, digests, strict=True)}
    file |= {
        "bytes_transferred": size,
        "status": "READY",
        "digests": found,
        "text": text.decode(errors="replace"),
    }


def _wrong(file: Info) -> str:
    checksum = file.get("checksum_info")
    if file["status"] != "READY":
        return f"{file['name']} did not come"
    if file.get("size") not in (None, file["bytes_transferred"]):
        return f"{file['name']} has {file['bytes_transferred']} bytes instead of {file['size']}"
    if checksum and file["digests"][checksum.get("algorithm", "SHA1")] != checksum["checksum"].lower():
        return f"the checksum of {file['name']} is another one"
    return ""


def _item(state: RestState, identity: str) -> Info:
    if identity not in state.items:
        raise missing("The library item", identity)
    return state.items[identity]


def _session(state: RestState, identity: str) -> Info:
    if identity not in state.sessions:
        raise missing("The update session", identity)
    return state.sessions[identity]


def _active(state: RestState, identity: str) -> Info:
    found = _session(state, identity)
    if found["state"] != "ACTIVE":
        raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", f"The session is {found['state']}.")
    return found
