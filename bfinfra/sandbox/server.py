"""Handlers behind loopback TLS ports: one listener an address, one thread a connection."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.handler import Handler
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.speaking import Spoken, speaking
from bfinfra.sandbox.tally import Tally

HANDSHAKE = 10  # seconds


class Listeners:
    """Opens and closes addresses. `changed` is called with {address: port} after each change."""

    def __init__(self, pki: Pki, faults: Faults, tally: Tally) -> None:
        self.changed: Callable[[dict[str, int]], None] = lambda _: None
        self._pki, self._faults, self._tally = pki, faults, tally
        self._open: dict[str, _Listener] = {}
        self._lock = threading.Lock()

    def open(self, address: str, handler: Handler, name: str = "kubernetes") -> int:
        """Put a handler behind "host:port"; the loopback port it listens on. `name`: which API fault rules
        and the tally take it for.

        A `name` of "" leaves both to the handler itself. An address that is open gets the new handler.
        """
        host = address.rpartition(":")[0]
        listener = _Listener(
            self._pki.context(host), speaking(address, Spoken(handler, name, self._faults, self._tally))
        )
        with self._lock:
            before = self._open.pop(address, None)
            self._open[address] = listener
        if before:
            before.close()
        self.changed(self.ports())
        return listener.port

    def close(self, address: str) -> None:
        """Close an address and its connections; nothing happens where it isn't open."""
        with self._lock:
            listener = self._open.pop(address, None)
        if listener:
            listener.close()
            self.changed(self.ports())

    def close_all(self) -> None:
        """Close every address."""
        for address in self.ports():
            self.close(address)

    def ports(self) -> dict[str, int]:
        """{address: loopback port} of all that is open."""
        with self._lock:
            return {address: listener.port for address, listener in self._open.items()}


def open_plain(handler: Handler) -> int:
    """Put a handler behind plain HTTP on a loopback port, uncounted and without faults; the port."""
    return _Listener(None, speaking("control", Spoken(handler, "", Faults(), Tally()))).port


class _Listener:
    """A listening socket; `handle(connection)` runs in a thread of its own for each connection."""

    def __init__(self, context: ssl.SSLContext | None, handle: Callable[[socket.socket], None]) -> None:
        self._context, self._handle = context, handle
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name=f"listener-{self.port}", daemon=True).start()

    def close(self) -> None:
        """Stop listening; open connections end."""
        _shut(self._socket)
        self._socket.close()
        with self._lock:
            for connection in self._connections:
                _shut(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(
                target=self._serve, args=(connection,), name=f"connection-{self.port}", daemon=True
            ).start()

    def _serve(self, plain: socket.socket) -> None:
        with self._lock:
            self._connections.add(plain)
        secured: Any = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(HANDSHAKE)
            secured = self._context.wrap_socket(plain, server_side=True) if self._context else plain
            secured.settimeout(None)
            with self._lock:
                self._connections.add(secured)
            self._handle(secured)
        except (OSError, ValueError):  # the client went, or spoke no TLS
            pass
        finally:
            with self._lock:
                self._connections -= {plain, secured}
            secured.close()


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
