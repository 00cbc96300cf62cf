"""A download site on loopback, over TLS, that answers ranges and misbehaves on demand."""

from __future__ import annotations

import re
import ssl
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bfinfra.sandbox.pki import Pki


@dataclass
class Files:
    """A server of one file. `cut`: bytes after which the next answers end; `status` of the next ones;
    `moved`: where it leads on to.
    """

    url: str
    pem: str
    data: bytes
    etag: str = '"one"'
    ranges: bool = True
    moved: dict[str, str] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    status: list[int] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    heard: list[dict[str, str]] = field(default_factory=list)

    @property
    def sent(self) -> int:
        """Bytes asked for beside single ones."""
        spans = [re.findall(r"\d+", wanted) for _, wanted in self.asked]
        return sum(int(end) - int(begin) + 1 for begin, end in spans)


class Server(ThreadingHTTPServer):
    """Says nothing of a client that hangs up, as one does that has heard enough; of anything else, what
    http.server says.
    """

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError | ssl.SSLError):
            super().handle_error(request, client_address)


@pytest.fixture
def files(tmp_path) -> Iterator[Files]:
    pki = Pki(tmp_path / "pki")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            made.heard.append(dict(self.headers))
            if onward := made.moved.get(self.path.partition("?")[0]):
                self.answer(302, b"", Location=onward)
                return
            made.asked.append((self.path, self.headers["Range"]))
            begin, end = map(int, re.findall(r"\d+", self.headers["Range"]))
            if made.status and end > begin:
                self.answer(made.status.pop(0), b"")
            elif made.ranges:
                self.answer(
                    206,
                    made.data[begin : end + 1],
                    **{"Content-Range": f"bytes {begin}-{end}/{len(made.data)}", "ETag": made.etag},
                )
            else:
                self.answer(200, made.data)

        def answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if value:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut = made.cut.pop(0) if made.cut and len(body) > max(made.cut[0], 600) else None
            self.wfile.write(body[:cut])
            if cut is not None:
                self.close_connection = True

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = pki.context("127.0.0.1").wrap_socket(server.socket, server_side=True)
    made = Files(
        f"https://127.0.0.1:{server.server_address[1]}/files/a.ova", pki.certificate("127.0.0.1"), b""
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join(5)
