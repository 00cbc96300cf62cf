"""A TLS server on loopback that keeps what it is sent, and answers as it is set up to."""

from __future__ import annotations

import contextlib
import ssl
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Listening:
    """`asked`: method, path, headers and body of each request. `answers`: path → status (0: none, the line is
    closed), body, headers; "*" for the rest.

    `met`: for each request, whether its client showed a certificate.
    """

    port: int = 0
    met: list[bool] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    answers: dict[str, tuple[int, bytes, dict[str, str]]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@contextlib.contextmanager
def listening(file: Path | None, *, newest: ssl.TLSVersion | None = None) -> Iterator[Listening]:
    """Serves with the certificate and key in `file`, without TLS where there is none; speaks no TLS newer
    than `newest`. Clients may show that certificate, too.
    """
    found = Listening()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            found.asked.append((self.command, self.path, dict(self.headers), body))
            found.met.append(
                isinstance(self.connection, ssl.SSLSocket) and bool(self.connection.getpeercert())
            )
            status, data, headers = found.answers.get(
                self.path.partition("?")[0], found.answers.get("*", (200, b"{}", {}))
            )
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for key, value in {"content-length": str(len(data)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_any  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a refused handshake is what the tests are about
    server.daemon_threads, server.block_on_close = True, False
    if file:
        server.socket = _context(file, newest).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    found.port = server.server_address[1]
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _context(file: Path, newest: ssl.TLSVersion | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.load_verify_locations(file)
    context.verify_mode, context.verify_flags = (
        ssl.CERT_OPTIONAL,
        context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN,
    )
    if newest:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # old versions are what is asked for
            context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
        context.set_ciphers("ALL:@SECLEVEL=0")
    return context
