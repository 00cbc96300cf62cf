"""Takes uploads of disks: PUT or POST /nfc/<lease>/disk-N.vmdk. Keeps sizes and digests, no contents."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.lease import public_id, renew

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

BLOCK = 1 << 20
MAGIC = b"KDMV"
SECTOR = 512
EVERY = 16  # blocks between two reports of progress


def esx_handler(inventory: Inventory) -> Handler:
    """Takes uploads for every ESXi host, and for vCenter where a client was given "*" as the host."""

    def handler(request: Request) -> Response:
        _, first, *rest = [*request.path.split("/"), "", ""]
        if first != "nfc":
            return text(404, f"nothing at {request.path}")
        if request.method not in ("PUT", "POST"):
            return text(405, f"{request.method} is not allowed here; disks come with PUT or POST")
        return upload(inventory, request, rest[0], rest[1])

    return handler


def text(status: int, message: str) -> Response:
    """An answer of plain text."""
    return Response(status, message.encode(), {"content-type": "text/plain"})


def upload(inventory: Inventory, request: Request, lease_id: str, name: str) -> Response:
    """Take one disk's stream. 404 for no such lease or disk, 500 for what is no stream-optimized VMDK."""
    with inventory.lock:
        lease = next((each for each in inventory.of(vim.HttpNfcLease) if public_id(each) == lease_id), None)
        if (
            lease is None
            or lease["state"] != "ready"
            or all(url.targetId != name for url in lease["info"].deviceUrl)
        ):
            return text(404, f"no lease is ready for {request.path}")
        lease.hidden["files"][name] = {"whole": False, "size": 0, "sha1": "", "sha256": ""}
        renew(inventory, lease)
    expected = int(request.headers["content-length"]) if "content-length" in request.headers else None
    found = read(inventory, lease, request)
    short = expected is not None and found["size"] != expected
    with inventory.lock:
        lease.hidden["files"][name] = {**found, "whole": found["whole"] and not short}
        inventory.touch(lease)
    if lease["state"] != "ready":
        return text(500, f"the lease {lease_id} ended during the upload")
    if short or not found["whole"]:
        return text(
            500,
            (
                f"{name} is {'shorter than announced' if short else 'no whole stream-optimized VMDK'}: "
                f"{found['size']} bytes came"
            ),
        )
    return Response(200 if request.method == "POST" else 201)


def read(inventory: Inventory, lease: Managed, request: Request) -> dict[str, Any]:
    """The stream's size and digests, and whether it begins and ends as a VMDK does."""
    sha1, sha256, size, head, tail, count = (
        hashlib.sha1(usedforsecurity=False),
        hashlib.sha256(),
        0,
        b"",
        b"",
        0,
    )
    while block := request.body.read(BLOCK):
        sha1.update(block)
        sha256.update(block)
        head, tail = head or block[:4], (tail + block)[-SECTOR:]
        size, count = size + len(block), count + 1
        if count % EVERY == 0:
            with inventory.lock:
                renew(inventory, lease)
    whole = head == MAGIC and size >= 2 * SECTOR and tail == bytes(SECTOR)
    return {"whole": whole, "size": size, "sha1": sha1.hexdigest(), "sha256": sha256.hexdigest()}
