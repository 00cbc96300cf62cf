"""Changes to the sandbox that its clients did not make."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.handler import Request

if TYPE_CHECKING:
    from bfinfra.sandbox.parts import Parts

METHODS = ("POST", "PUT", "PATCH", "DELETE")


LOST = ("inaccessible", "invalid", "orphaned")
"""Connection states of a VM that its host can't run. Of the first two vCenter returns no configuration.
Source: VirtualMachineConnectionState of the vSphere API.
"""


class BadChange(ValueError):
    """A change that can't be made."""


def change(parts: Parts, body: Any) -> Any:
    """Make {"address", "method", "path", "body", "content_type"} as an administrator; returns the API's
    answer. Raises BadChange.

    Or {"machine", "path", "text"}: a file on a Linux machine, written by root there; without `text` it goes.
    Or {"inaccessible"}: the name of a VM whose datastore is lost: vCenter knows the path of its file alone;
    {"invalid"}: of one whose configuration can't be read; {"orphaned"}: of one that its host no longer has.

    `address`: "vcsa.aiml.local:443" for vCenter's REST API, the address of a Kubernetes API for that one.
    """
    if isinstance(body, dict) and set(body) >= {"machine", "path"}:
        return _on_machine(parts, str(body["machine"]), str(body["path"]), body.get("text"))
    if isinstance(body, dict) and len(body) == 1 and (state := next(iter(body))) in LOST:
        return _lose(parts, str(body[state]), state)
    match body:
        case {"address": str(address), "method": str(method), "path": str(path)} if method in METHODS:
            handler, headers = parts.as_administrator(address)
        case _:
            raise BadChange(
                f'write {{"address", "method", "path", "body"}}; methods are {", ".join(METHODS)}'
            )
    if handler is None:
        raise BadChange(f"nothing can be changed at {address}; open are {', '.join(parts.listeners.ports())}")
    data = json.dumps(body["body"]).encode() if "body" in body else b""
    pure, _, query = path.partition("?")
    headers = {
        **headers,
        "content-type": body.get("content_type", "application/json"),
        "content-length": str(len(data)),
    }
    answer = handler(Request(method, pure, query, headers, io.BytesIO(data), address))
    text = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return {"status": answer.status, "body": text.decode(errors="replace")}


def _on_machine(parts: Parts, machine: str, path: str, text: str | None) -> None:
    try:
        parts.linux.put(machine, path, text)
    except KeyError:
        raise BadChange(
            f"there is no Linux machine {machine}; there are {', '.join(parts.linux.all) or 'none'}"
        ) from None


def _lose(parts: Parts, name: str, state: str) -> None:
    inventory = parts.inventory
    vm = next((each for each in inventory.vms() if each["name"] == name), None)
    if vm is None:
        raise BadChange(f"there is no VM {name}")
    with inventory.lock:
        vm["runtime"].connectionState = state
        if state == "inaccessible":
            vm["name"] = vm["config"].files.vmPathName
        if state != "orphaned":
            vm.hidden["unset"] = ["config"]
        inventory.touch(vm)
