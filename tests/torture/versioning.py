"""A proxy before vcsim that enforces the versions of machines' configurations: vcsim counts them, and writes a
stale one all the same.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from peers.found import USER, Peers
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim

WRITE = re.compile(rb"<ReconfigVM_Task\b.*?<_this[^>]*>([^<]+)</_this>", re.DOTALL)
VERSION = re.compile(rb"<changeVersion>([^<]*)</changeVersion>")
TASK = re.compile(rb"<returnval[^>]*>(task-[^<]+)</returnval>")
STALE = (
    b'<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope '
    b'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
    b'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault>'
    b"<faultcode>ServerFaultCode</faultcode><faultstring>It was modified by another operation.</faultstring>"
    b'<detail><ConcurrentAccessFault xmlns="urn:vim25" xsi:type="ConcurrentAccess"/></detail>'
    b"</soapenv:Fault></soapenv:Body></soapenv:Envelope>"
)
LONGEST = 30  # seconds that a reconfiguration may take
KEPT = {"connection", "transfer-encoding", "content-length"}
"""Headers that belong to one connection."""


class Versioning(ThreadingHTTPServer):
    """`behind`: the vcsim that it stands before, which may become another one; `refused`: how many writes were
    stale.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.certificate = folder / "proxy.crt"
        _certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, folder / "proxy.key")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.behind, self.refused, self.turn = "", 0, threading.Lock()
        self._si: Any = None

    @property
    def address(self) -> str:
        """host:port, for clients."""
        return f"127.0.0.1:{self.server_address[1]}"

    def stand_before(self, peers: Peers) -> None:
        """Serve this vcsim from now on."""
        self.behind = peers.vcsim
        host, _, port = peers.vcsim.rpartition(":")
        self._si = SmartConnect(
            host=host, port=int(port), user=USER, pwd=peers.password, sslContext=unverified()
        )

    def leave(self) -> None:
        """End the session with it."""
        if self._si is not None:
            with contextlib.suppress(OSError, vim.fault.VimFault):
                Disconnect(self._si)

    def version(self, machine: str) -> str:
        """Of its configuration, now."""
        return str(vim.VirtualMachine(machine, self._si._stub).config.changeVersion)

    def settled(self, task: str) -> None:
        """Wait for its end: what it changes is part of the turn."""
        limit = time.monotonic() + LONGEST
        while vim.Task(task, self._si._stub).info.state not in ("success", "error"):
            assert time.monotonic() < limit, f"{task} does not end"
            time.sleep(0.002)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Versioning

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        machine, version = WRITE.search(body), VERSION.search(body)
        if machine is None:
            self._answer(*self._forwarded(body))
            return
        with self.server.turn:
            if version is not None and self.server.version(machine[1].decode()) != version[1].decode():
                self.server.refused += 1
                self._answer(500, [("Content-Type", "text/xml; charset=utf-8")], STALE)
                return
            status, headers, answer = self._forwarded(body)
            if task := TASK.search(answer):
                self.server.settled(task[1].decode())
        self._answer(status, headers, answer)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _any  # noqa: N815 - http.server's names

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        host, _, port = self.server.behind.rpartition(":")
        far = http.client.HTTPSConnection(host, int(port), context=unverified(), timeout=120)
        try:
            headers = {name: text for name, text in self.headers.items() if name.lower() not in KEPT}
            far.request(self.command, self.path, body, {**headers, "Accept-Encoding": "identity"})
            answer = far.getresponse()
            kept = [(name, text) for name, text in answer.getheaders() if name.lower() not in KEPT]
            return answer.status, kept, answer.read()
        finally:
            far.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(OSError):  # a client that was killed
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def unverified() -> ssl.SSLContext:
    """For a throw-away server on loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _certificate(folder: Path) -> None:
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", "/CN=127.0.0.1", "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", "proxy.key", "-out", "proxy.crt"),
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@contextlib.contextmanager
def versioning(folder: Path) -> Iterator[Versioning]:
    """The proxy, until the block is left."""
    made = Versioning(folder)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()
        made.leave()
