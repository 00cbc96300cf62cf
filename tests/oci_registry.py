"""An OCI registry on loopback, over TLS: its clients push, as `helm push` does, and pull with a token."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from file_server import Server

from bfinfra.sandbox.pki import Pki

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ARCHIVE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
TOKEN = "a-token-for-pulling"
PLACE = re.compile(r"/v2/(?P<name>.+)/(?P<what>manifests|blobs|blobs/uploads)/(?P<which>[^/]*)")


@dataclass
class Registry:
    """`account`: user and password that a pull needs, if any; `moved`: where blobs are answered from."""

    server: str
    ca_file: Path
    account: tuple[str, str] | None = None
    moved: bool = False
    blobs: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and path, and the Authorization's scheme."""

    def put(self, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.blobs[digest] = content
        return digest

    def chart(self, archive: bytes, kind: str = ARCHIVE) -> str:
        """Holds a chart, and returns its digest."""
        layer = {"mediaType": kind, "digest": self.put(archive), "size": len(archive)}
        return self.put(json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [layer]}).encode())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: Registry

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        mine = self.registry
        heard = self.headers.get("Authorization", "")
        mine.asked.append((f"{self.command} {self.path}", heard.partition(" ")[0]))
        if self.path.startswith("/token"):
            expected = base64.b64encode(":".join(mine.account or ()).encode()).decode()
            asked = parse_qs(urlsplit(self.path).query)
            fits = heard == f"Basic {expected}" and asked["scope"][0].endswith(":pull")
            self.answer(200 if fits else 401, json.dumps({"token": TOKEN} if fits else {}).encode())
            return
        if self.path.startswith("/elsewhere/"):
            self.answer(400 if heard else 200, mine.blobs[self.path.rpartition("/")[2]])
            return
        if mine.account and heard != f"Bearer {TOKEN}":
            challenge = f'Bearer realm="https://{mine.server}/token",service="it"'
            self.answer(401, b"{}", {"WWW-Authenticate": challenge})
            return
        found = PLACE.fullmatch(self.path)
        which = mine.tags.get(found["which"], found["which"]) if found else ""
        if self.path == "/v2/":
            self.answer(200, b"{}")
        elif which not in mine.blobs:
            self.answer(404, b'{"errors": []}')
        elif mine.moved and found and found["what"] == "blobs":
            self.answer(307, b"", {"Location": f"https://{mine.server}/elsewhere/{which}"})
        else:
            kind = MANIFEST if found and found["what"] == "manifests" else "application/octet-stream"
            self.answer(200, mine.blobs[which], {"Content-Type": kind, "Docker-Content-Digest": which})

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def do_POST(self) -> None:
        self.body()
        self.answer(202, b"", {"Location": f"{self.path.rstrip('/')}/one"})

    def do_PUT(self) -> None:
        digest = self.registry.put(self.body())
        if (found := PLACE.fullmatch(urlsplit(self.path).path)) and found["what"] == "manifests":
            self.registry.tags[found["which"]] = digest
        self.answer(201, b"", {"Location": self.path, "Docker-Content-Digest": digest})

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def running(folder: Path) -> Iterator[Registry]:
    pki = Pki(folder / "pki")

    class Own(Handler):
        pass

    server = Server(("127.0.0.1", 0), Own)
    server.socket = pki.context("127.0.0.1").wrap_socket(server.socket, server_side=True)
    Own.registry = Registry(f"127.0.0.1:{server.server_address[1]}", pki.ca_file)
    how: dict[str, Any] = {"poll_interval": 0.01}
    thread = threading.Thread(target=server.serve_forever, kwargs=how, daemon=True)
    thread.start()
    yield Own.registry
    server.shutdown()
    server.server_close()
    thread.join(5)
