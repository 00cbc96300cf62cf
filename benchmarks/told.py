"""A relay in front of vcsim that tells of changes at once, as a vCenter does: vcsim itself computes all of a
collector's filters anew for each change, which takes minutes with 10,000 servers.

Every request goes on to vcsim, the first WaitForUpdatesEx of a collector too. Later ones the relay holds,
until it is told of a change or their time is over, and answers with that one object.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from xml.sax.saxutils import escape

from pyVmomi.SoapAdapter import SOAP_END, SOAP_START, XML_HEADER
from vcsims import Vcsim

from bfinfra.backends import tls
from bfinfra.sandbox.pki import Pki

ANSWER = (
    f'{XML_HEADER}\n{SOAP_START}<WaitForUpdatesExResponse xmlns="urn:vim25">{{}}'
    f"</WaitForUpdatesExResponse>{SOAP_END}"
)
UPDATE = (
    '<returnval><version>{version}</version><filterSet><filter type="PropertyFilter">{filter}</filter>'
    '<objectSet><kind>modify</kind><obj type="VirtualMachine">{moid}</obj><changeSet><name>{path}</name>'
    '<op>assign</op><val xsi:type="xsd:string">{value}</val></changeSet></objectSet></filterSet></returnval>'
)
NOT_PASSED_ON = ("accept-encoding", "connection", "content-length", "host", "transfer-encoding")


class Relay:
    """What is told, and to whom. `filter`: that of the container views, which sees all machines."""

    def __init__(self, server: Vcsim) -> None:
        self.host, _, self.port = server.direct.rpartition(":")
        self.told: SimpleQueue[str] = SimpleQueue()
        self.version = self.filter = ""
        self.followed = False

    def tell(self, moid: str, path: str, value: str) -> None:
        """Of a machine that has changed."""
        self.told.put(
            UPDATE.format(
                version=self.version, filter=self.filter, moid=moid, path=escape(path), value=escape(value)
            )
        )

    def next(self, seconds: float) -> str:
        """The next change, or "" after so many seconds."""
        try:
            return self.told.get(timeout=seconds)
        except Empty:
            return ""

    def began(self, answer: str) -> None:
        """Keep what a collector's first answers say: its version, the filter that has machines, and whether
        it was the last of them.
        """
        for each in answer.split("<filterSet>")[1:]:
            if '"VirtualMachine"' in each and not self.filter:
                self.filter = re.findall(r"<filter[^>]*>([^<]*)</filter>", each)[0]
        self.version = re.findall(r"<version>([^<]*)</version>", answer)[0]
        self.followed = "<truncated>true</truncated>" not in answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    relay: Relay

    def setup(self) -> None:
        super().setup()
        self.server_side = http.client.HTTPSConnection(
            self.relay.host, int(self.relay.port), context=tls.unverified()
        )

    def finish(self) -> None:
        self.server_side.close()
        super().finish()

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        waits = b"<WaitForUpdatesEx" in body
        if waits and self.relay.followed and b"<version></version>" not in body:
            (seconds,) = re.findall(rb"<maxWaitSeconds>(\d+)<", body)
            self.say(200, {"content-type": "text/xml"}, ANSWER.format(self.relay.next(int(seconds))).encode())
            return
        headers = {key: value for key, value in self.headers.items() if key.lower() not in NOT_PASSED_ON}
        self.server_side.request(self.command, self.path, body or None, headers)
        answer = self.server_side.getresponse()
        data = answer.read()
        if waits:
            self.relay.began(data.decode())
        self.say(answer.status, dict(answer.getheaders()), data)

    def do_GET(self) -> None:
        self.do_POST()

    def say(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response_only(status)
        for key, value in headers.items():
            if key.lower() not in NOT_PASSED_ON:
                self.send_header(key, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Listening(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that went."""


@contextlib.contextmanager
def telling(server: Vcsim, folder: Path) -> Iterator[tuple[Vcsim, Relay]]:
    """The same server, behind a relay that runs until the block is left."""
    relay = Relay(server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Pki(folder / "relay").leaf("127.0.0.1"))
    listening = Listening(("127.0.0.1", 0), type("Relaying", (Handler,), {"relay": relay}))
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{listening.server_port}"
    try:
        yield replace(server, address=address, direct=address), relay
    finally:
        listening.shutdown()
