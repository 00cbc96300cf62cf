"""Bitfusion servers: machines deployed from a Bitfusion OVA answer on port 56001 while they run."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.registration import registers

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Inventory, Managed
    from bfinfra.sandbox.server import Listeners

PORT = 56001
OTHERS = (55001, *range(45201, 45301))  # the dispatcher, and as many of the data path as a client could want
USABLE = {
    32768: 32510,
    16384: 16160,
    24576: 24220,
    40960: 40537,
    81920: 81051,
}  # MiB of a card: what is left for programs
MIB = 2**20


@dataclass(frozen=True)
class Server:
    """A running server. `memory`: MiB of each GPU that programs can use."""

    uuid: str
    version: str
    memory: tuple[int, ...]


class BitfusionServers:
    """Starts and stops the servers' listeners as their machines go on and off; `running` are those up, by
    "ip:port".
    """

    def __init__(self, inventory: Inventory, listeners: Listeners) -> None:
        self._inventory, self._listeners = inventory, listeners
        self._addresses: dict[str, str] = {}
        self.running: dict[str, Server] = {}
        self._lock = threading.Lock()
        inventory.on_power(self._powered)

    def serves(self, address: str) -> bool:
        """Return whether a server of this world takes TCP connections at "ip:port". A Bitfusion server does
        so once it has all that it needs.
        """
        host, _, port = address.rpartition(":")
        return address in self._listeners.ports() or (
            f"{host}:{PORT}" in self.running and int(port) in OTHERS
        )

    def _powered(self, vm: Managed, on: bool) -> None:
        with self._lock:
            gone = self._addresses.pop(vm.moid, None)
            if gone:
                self.running.pop(gone, None)
                self._listeners.close(gone)
            server, address = (self._server(vm), _address(vm)) if on else (None, "")
            if server and address:
                self._addresses[vm.moid], self.running[address] = address, server
                self._listeners.open(address, _handler_of(server), "bitfusion")

    def _server(self, vm: Managed) -> Server | None:
        """Return the service that the machine offers; None where it is no Bitfusion server, or can't register
        with its vCenter.

        One without GPUs keeps its cluster's quorum.
        """
        with self._inventory.lock:
            config = vm["config"]
            products = config.vAppConfig.product if config.vAppConfig else []
            product = next((each for each in products if "bitfusion" in (each.name or "").lower()), None)
            memory = tuple(_memory(self._inventory, vm, each) for each in config.hardware.device)
        gpus = tuple(USABLE.get(each, each) for each in memory if each)
        able = product is not None and registers(self._inventory, vm)
        return Server(str(config.instanceUuid), _version(product), gpus) if able else None


def _memory(inventory: Inventory, vm: Managed, device: object) -> int:
    """MiB of a passed-through GPU; 0 for other devices."""
    backing = getattr(device, "backing", None)
    identity = getattr(backing, "id", None) or getattr(backing, "assignedId", None)
    host = vm["runtime"].host
    if not identity or host is None:
        return 0
    return int(inventory.get(host).hidden.get("pci_memory", {}).get(identity, 0)) // MIB


def _version(product: Any) -> str:
    """The version as the server reports it: "3.0.0-f95ba24a" for the product's 3.0.0-11."""
    return f"{re.split('[-+ ]', product.version or '3.0.0')[0]}-f95ba24a"


def _address(vm: Managed) -> str:
    ip = vm["guest"].ipAddress
    return f"{ip}:{PORT}" if ip else ""


def _handler_of(server: Server) -> Handler:
    def handler(request: Request) -> Response:
        if request.method == "GET" and request.path == "/claim_id":
            return Response(200, server.uuid.encode(), {"content-type": "text/plain"})
        return Response(404, b"not found", {"content-type": "text/plain"})

    return handler
