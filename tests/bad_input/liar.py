"""A TLS server that answers with whatever bytes a test gives it: what no web framework would let it send."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator

from bfinfra.sandbox.pki import Pki

Answer = Callable[[str], Iterable[bytes]]
"""Request line and headers → the bytes of the answer, sent piece by piece."""
STEP = 0.02  # seconds between two pieces of what drips


class Liar:
    """Listens on loopback at `url`; every connection is answered until the client leaves."""

    def __init__(self, answer: Answer, pki: Pki) -> None:
        self.answer = answer
        self.sent = 0
        self.ended = threading.Event()
        self._context = pki.context("127.0.0.1")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop at once; whoever still listens is cut off."""
        self.ended.set()
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self._socket.accept()
                threading.Thread(target=self._speak, args=(plain,), daemon=True).start()

    def _speak(self, plain: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            plain,
            self._context.wrap_socket(plain, server_side=True) as stream,
        ):
            while asked := _request(stream):
                for piece in self.answer(asked):
                    if self.ended.is_set():
                        return
                    stream.sendall(piece)
                    self.sent += len(piece)


def _request(stream: ssl.SSLSocket) -> str:
    """The next request, its body read and thrown away; "" at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (got := stream.recv(1 << 16)):
            return ""
        data += got
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = next(
        (int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length:")), 0
    )
    while len(body) < length and (got := stream.recv(1 << 16)):
        body += got
    return lines[0] + "\r\n" + body.decode("latin-1")


def answer(body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """A whole answer."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode()
        + body
    )


def chunked(blocks: Iterable[bytes], kind: str = "application/json", **headers: str) -> Iterator[bytes]:
    """An answer in chunks; endless where the blocks are."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    yield f"HTTP/1.1 200 X\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n{more}\r\n".encode()
    for block in blocks:
        yield f"{len(block):x}\r\n".encode() + block + b"\r\n"
    yield b"0\r\n\r\n"


def forever(block: bytes) -> Iterator[bytes]:
    """The same block without an end."""
    while True:
        yield block


def dripping(data: bytes) -> Iterator[bytes]:
    """One byte at a time, with pauses."""
    pause = threading.Event()
    for number in range(len(data)):
        yield data[number : number + 1]
        pause.wait(STEP)


def bomb(size: int, of: bytes = b" ") -> bytes:
    """`size` bytes, packed a thousandfold."""
    return gzip.compress(of * (size // len(of)), 1)


def nested(depth: int) -> bytes:
    """JSON that is too deep for a parser that calls itself."""
    return b"[" * depth + b"]" * depth


def as_json(value: object) -> bytes:
    """An answer in JSON."""
    return answer(json.dumps(value).encode())
