"""A TCP proxy on loopback in front of a server: it cuts connections, breaks off answers, and lets nobody in."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torture.far import AT_ONCE

BLOCK = 1 << 16


@dataclass
class Wire:
    """`address`: where clients connect to. While it is `shut`, new connections are reset. `left`: bytes of
    answers until the connection that brings them is cut, once; None for never.
    """

    behind: tuple[str, int]
    listener: socket.socket
    shut: bool = False
    left: int | None = None
    lines: set[socket.socket] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> tuple[str, int]:
        """Its host and port."""
        host, port = self.listener.getsockname()
        return str(host), int(port)

    def cut(self) -> None:
        """Reset every connection."""
        with self.lock:
            lines, self.lines = self.lines, set()
        for each in lines:
            _reset(each)

    def serve(self) -> None:
        """Until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                self._enter(near)

    def _enter(self, near: socket.socket) -> None:
        try:
            if self.shut:
                raise ConnectionRefusedError
            far = socket.create_connection(self.behind)
        except OSError:
            _reset(near)
            return
        with self.lock:
            self.lines |= {near, far}
        for one, other, answers in ((near, far, False), (far, near, True)):
            threading.Thread(target=self._pump, args=(one, other, answers), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(BLOCK):
                part = self._part(len(data)) if answers else len(data)
                other.sendall(data[:part])
                if part < len(data):
                    break
            else:
                other.shutdown(socket.SHUT_WR)
                with self.lock:
                    self.lines.discard(one)  # closed once nobody holds it any more
                return
        with self.lock:
            self.lines -= {one, other}
        for each in (one, other):
            _reset(each)

    def _part(self, size: int) -> int:
        """How many of so many bytes still arrive."""
        with self.lock:
            if self.left is None or self.left >= size:
                self.left = self.left and self.left - size
                return size
            part, self.left = self.left, None
            return part


@contextmanager
def wire(behind: tuple[str, int]) -> Iterator[Wire]:
    """A proxy that runs until the block is left."""
    made = Wire(behind, socket.create_server(("127.0.0.1", 0)))
    threading.Thread(target=made.serve, daemon=True).start()
    try:
        yield made
    finally:
        made.listener.shutdown(socket.SHUT_RDWR)
        made.listener.close()
        made.cut()


def _reset(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        line.shutdown(socket.SHUT_RD)
    with contextlib.suppress(OSError):
        line.close()
