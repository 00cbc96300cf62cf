"""HTTP/1.1 on a connection: requests to a handler, its answers back; keep-alive, chunked bodies both ways,
100-continue.
"""

from __future__ import annotations

import io
import json
import re
import socket
import struct
import traceback
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from bfinfra.sandbox.bodies import Body, Malformed
from bfinfra.sandbox.faults import Answered, Faults, Halved, Reset
from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.tally import Tally

READS = ("GET", "HEAD", "OPTIONS")
LOGINS = ("/api/session", "/rest/com/vmware/cis/session", "/wcp/login")
REVIEWS = ("/selfsubjectaccessreviews", "/selfsubjectrulesreviews", "/tokenreviews", "/selfsubjectreviews")
LOOKS = ("list-", "filter")
"""Actions of tags and of OVF items that only read."""
DRAINED = 1 << 20  # bytes of a body that the handler left unread; beyond, the connection ends
BODILESS = (204, 304)
PLAIN = re.compile(rb"([A-Z]+) (/(?:[!-.0-~][!-~]*)?) HTTP/1\.1\r\n")
HEADERS = re.compile(rb"(?:[!-9;-~]+:[\t -~]*\r\n){1,99}")
HALF = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"items": [{"meta'
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time: close sends a reset


@dataclass(frozen=True)
class Spoken:
    """A handler with what surrounds each of its calls. `name` "" leaves faults and tally to the handler. The
    object of a watch is its path, and "watch".
    """

    handler: Handler
    name: str
    faults: Faults
    tally: Tally

    def __call__(self, request: Request) -> Response:
        """Answer a request. Raises Interrupted if a fault rule requires it."""
        if not self.name:
            return self.handler(request)
        method = f"{request.method} {request.path}"
        written = writes(request)
        self.tally.count(self.name, method, writes=written)
        objects = (request.path, *(["watch"] if request.params.get("watch") in ("1", "true") else []))
        with self.faults.during(self.name, method, *objects, writes=written) as effect:
            answer = self.handler(request)
            return refused(effect.message) if effect.message else answer


def writes(request: Request) -> bool:
    """Return whether a request of these APIs may change anything but its own session."""
    path = request.path.rstrip("/")
    looks = (
        request.params.get("action", "").startswith(LOOKS)
        or path.endswith(REVIEWS)
        or "dryRun" in request.params
    )
    return request.method not in READS and path not in LOGINS and not looks


def refused(message: str) -> Response:
    """An internal error with this text."""
    return Response(500, message.encode(), {"content-type": "text/plain"})


def speaking(address: str, spoken: Spoken) -> Callable[[socket.socket], None]:
    """Return the handler of connections to the address."""

    def handle(connection: socket.socket) -> None:
        _Handler(connection, address, spoken)

    return handle


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "sandbox", ""
    rbufsize, wbufsize = 1 << 16, 1 << 16
    rfile: io.BufferedReader

    def __init__(self, connection: socket.socket, address: str, spoken: Spoken) -> None:
        self._address, self._spoken = address, spoken
        self._fields: dict[str, str] = {}
        super().__init__(connection, ("127.0.0.1", 0), None)  # type: ignore[arg-type]  # there is no socketserver around it

    def handle_one_request(self) -> None:
        """One request and its answer; the connection ends where either can't be finished."""
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            self.wfile.flush()
            return
        self._handle_one()
        self.wfile.flush()

    def parse_request(self) -> bool:
        """Read the request's head. The standard library makes a mail message of the headers, which takes ten
        times as long: it reads only what is not plain HTTP/1.1.
        """
        line, fields = PLAIN.fullmatch(self.raw_requestline), None
        if line and (fields := self._plain_headers()) is not None:
            self.command, self.path, self.request_version = line[1].decode(), line[2].decode(), "HTTP/1.1"
            self.requestline, self._fields = line[0].decode().rstrip(), fields
            self.close_connection = fields.get("connection", "").lower() == "close"
            return fields.get("expect", "").lower() != "100-continue" or self.handle_expect_100()
        if not super().parse_request():
            return False
        self._fields = {name.lower(): value for name, value in self.headers.items()}
        return True

    def _plain_headers(self) -> dict[str, str] | None:
        """Headers by their names in lower case; None, and nothing read, where they aren't all here or aren't
        plain.
        """
        here = self.rfile.peek()
        end = here.find(b"\r\n\r\n") + 2
        if end < 2 or not HEADERS.fullmatch(here, 0, end):
            return None
        lines = self.rfile.read(end + 2)[: end - 2].decode("ascii").split("\r\n")
        parts = (each.partition(":") for each in lines)
        return {name.lower(): value.lstrip(" \t") for name, _, value in parts}

    def handle_expect_100(self) -> bool:
        """Let the client continue with the body."""
        self.send_response_only(HTTPStatus.CONTINUE)
        self.end_headers()
        self.wfile.flush()
        return True

    def _handle_one(self) -> None:
        try:
            body = Body(self.rfile, self._fields)
            path, _, query = self.path.partition("?")
            answer = self._answer(
                Request(
                    self.command, path, query, self._fields, io.BufferedReader(body, 1 << 16), self._address
                )
            )
            self._send(answer)
            self.close_connection |= not body.drain(DRAINED)
        except Malformed as error:
            self.close_connection = True
            self._send(Response(400, str(error).encode()))
        except Halved:
            self.close_connection = True
            self.wfile.write(HALF)
        except Reset:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.connection.close()
            raise ConnectionResetError from None

    def _answer(self, request: Request) -> Response:
        try:
            return self._spoken(request)
        except Answered as instead:
            retry = {} if instead.retry_after is None else {"retry-after": f"{instead.retry_after:g}"}
            return Response(
                instead.status,
                json.dumps({"message": "a fault rule of the sandbox"}).encode(),
                {"content-type": "application/json", **retry},
            )
        except (Malformed, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - a defect of a handler must reach the client, and the log in full
            traceback.print_exc()
            return refused(f"the sandbox failed: {error!r}"[:500])

    def _send(self, answer: Response) -> None:
        whole = answer.body if isinstance(answer.body, bytes) else None
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if whole is not None and answer.status not in BODILESS:
            self.send_header("Content-Length", str(len(whole)))
        elif whole is None:
            self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD" and answer.status not in BODILESS:
            self._send_body(answer.body)

    def _send_body(self, body: bytes | Iterable[bytes]) -> None:
        if isinstance(body, bytes):
            self.wfile.write(body)
            return
        self.wfile.flush()
        chunks: Any = iter(body)
        with closing(chunks) if hasattr(chunks, "close") else nullcontext():
            for chunk in chunks:
                if chunk:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Requests are counted, not logged."""
