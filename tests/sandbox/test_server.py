"""Listeners speak HTTP/1.1 over TLS as independent clients expect."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Https, read

from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.handler import Request, Response, as_json
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.tally import Tally

ADDRESS = "vc.test:443"


def handler(request: Request) -> Response:
    """Says what it was asked; breaks, streams or leaves the body unread where the path says so."""
    if request.path == "/broken":
        raise KeyError("inside")
    if request.path == "/stream":
        return Response(200, (b"%d\n" % n for n in range(3)))
    if request.path == "/nothing":
        return Response(204)
    size = 0 if request.path == "/unread" else len(request.body.read())
    return as_json(
        {
            "method": request.method,
            "path": request.path,
            "size": size,
            "address": request.address,
            "params": request.params,
        }
    )


class Place:
    def __init__(self, folder: Path) -> None:
        self.pki, self.faults, self.tally = Pki(folder), Faults(), Tally()
        self.listeners = Listeners(self.pki, self.faults, self.tally)
        self.port = self.listeners.open(ADDRESS, handler, "rest")
        self.clients: list[Https] = []

    def client(self) -> Https:
        self.clients.append(Https("vc.test", self.port, str(self.pki.ca_file)))
        return self.clients[-1]

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.listeners.close_all()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.close()


def test_requests_of_every_kind_share_one_connection(place: Place) -> None:
    client = place.client()
    client.request("GET", "/x?a=1&b=")
    assert read(client).data == {
        "method": "GET",
        "path": "/x",
        "size": 0,
        "address": ADDRESS,
        "params": {"a": "1", "b": ""},
    }
    before = client.sock
    client.request("PUT", "/x", b"z" * 300_000)
    assert read(client).data["size"] == 300_000
    client.request("POST", "/x", iter([b"ab", b"", b"cde"]), encode_chunked=True)
    assert read(client).data["size"] == 5
    client.request("POST", "/unread", b"z" * 5000)
    assert read(client).status == 200
    client.request("DELETE", "/nothing")
    assert read(client).status == 204
    client.request("HEAD", "/x")
    assert read(client).data == b""
    client.request("GET", "/stream")
    assert read(client).data == b"0\n1\n2\n"
    client.request("GET", "/broken")
    broken = read(client)
    assert (broken.status, b"KeyError" in broken.data) == (500, True)
    assert client.sock is before
    client.close()


def test_the_certificate_holds_for_the_host_and_for_loopback_and_no_other_name(place: Place) -> None:
    context = ssl.create_default_context(cafile=str(place.pki.ca_file))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    for name in ("vc.test", "localhost", "127.0.0.1"):
        with (
            socket.create_connection(("127.0.0.1", place.port)) as plain,
            context.wrap_socket(plain, server_hostname=name) as secured,
        ):
            assert secured.version() in ("TLSv1.2", "TLSv1.3")
    with (
        socket.create_connection(("127.0.0.1", place.port)) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        context.wrap_socket(plain, server_hostname="other.test")


def test_certificates_outlive_the_process(place: Place, tmp_path: Path) -> None:
    assert Pki(tmp_path).certificate("vc.test") == place.pki.certificate("vc.test")
    assert (tmp_path / "vc.test.pem").stat().st_mode & 0o077 == 0


def test_a_body_that_ends_early_or_is_framed_wrongly_is_refused(place: Place) -> None:
    context = ssl.create_default_context(cafile=str(place.pki.ca_file))
    for framing in (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"Content-Length: ten\r\n\r\n"):
        with (
            socket.create_connection(("127.0.0.1", place.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            secured.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\n" + framing)
            assert secured.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b"GET /x?a=1 HTTP/1.1\r\nHost: x\r\nX-A:  b\t\r\n\r\n", b"200 OK"),
        (b"GET /x?a=1 HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n", b"200 OK"),
        (b"GET /x?a=1 HTTP/1.1\r\nHost: \xe4\r\n\r\n", b"200 OK"),
        (b"GET /x?a=1 HTTP/1.1\nHost: x\n\n", b"200 OK"),
        (b"GET /x?a=1 HTTP/1.1\r\n\r\n", b"200 OK"),
        (b"GET //x?a=1 HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK"),
        (b"GET /x?a=1 HTTP/1.1\r\n" + b"X: y\r\n" * 99 + b"\r\n", b"200 OK"),
        (b"GET /x?a=1 HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n", b"431 Too many headers"),
        (b"GET /x?a=1 HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", b"431 Line too long"),
        (b"GET /x a HTTP/1.1\r\nHost: x\r\n\r\n", b"400 Bad request syntax"),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_a_head_is_read_plain_or_not_at_once_or_in_parts(
    place: Place, head: bytes, answer: bytes, apart: bool
) -> None:
    context = ssl.create_default_context(cafile=str(place.pki.ca_file))
    with (
        socket.create_connection(("127.0.0.1", place.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="vc.test") as secured,
    ):
        for part in (head[:30], head[30:]) if apart else (head,):
            secured.sendall(part)
            time.sleep(0.01 * apart)
        with secured.makefile("rb") as read_by:
            assert answer in read_by.readline()
            if answer == b"200 OK":
                size = next(int(line[15:]) for line in read_by if line.startswith(b"Content-Length:"))
                assert read_by.readline() == b"\r\n"
                assert json.loads(read_by.read(size))["params"] == {"a": "1"}


def test_a_head_s_headers_are_those_that_the_standard_library_reads(place: Place) -> None:
    seen: list[dict[str, str]] = []
    port = place.listeners.open(
        "heads.test:443", lambda request: seen.append(dict(request.headers)) or Response(204), "rest"
    )
    client = Https("heads.test", port, str(place.pki.ca_file))
    for odd in ({}, {"X-Odd": "\xe4"}):  # what isn't ASCII is read by the standard library
        client.request("GET", "/", headers={"X-A": " b: c ", "COOKIE": 'k="v"; w', "X-Empty": "", **odd})
        client.getresponse().read()
    client.close()
    assert seen[1].pop("x-odd") == "\xe4"
    assert seen[0] == seen[1]
    assert seen[0]["x-a"] == "b: c "


def test_faults_strike_by_api_and_path(place: Place) -> None:
    place.faults.add(
        [
            {"api": "rest", "method": "GET /busy", "do": {"status": 503, "retry_after": 2}},
            {"method": "GET /gone", "do": "reset_before"},
        ]
    )
    client = place.client()
    client.request("GET", "/busy")
    answer = read(client)
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    client.request("GET", "/gone")
    with pytest.raises((ConnectionResetError, ssl.SSLError, http.client.RemoteDisconnected)):
        client.getresponse()


def test_calls_and_writes_are_counted_apart(place: Place) -> None:
    client = place.client()
    for method, path in (
        ("GET", "/x"),
        ("POST", "/api/session"),
        ("POST", "/x"),
        ("POST", "/x?dryRun=All"),
        ("POST", "/apis/a/v1/selfsubjectaccessreviews"),
    ):
        client.request(method, path)
        read(client)
    assert place.tally.read()["writes"] == {"rest": {"POST /x": 1}}
    assert place.tally.read()["total"] == 5


def test_closing_an_address_ends_its_connections_and_informs_followers(place: Place) -> None:
    seen: list[dict[str, int]] = []
    place.listeners.changed = seen.append
    client = place.client()
    client.request("GET", "/x")
    read(client)
    place.listeners.close(ADDRESS)
    assert seen == [{}]
    with pytest.raises(OSError):
        client.request("GET", "/x")
        client.getresponse()
        client.request("GET", "/x")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", place.port))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_uploads_with_expect_and_chunks(place: Place, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 2_000_000)
    base = [
        "curl",
        "-sS",
        "--cacert",
        str(place.pki.ca_file),
        "--connect-to",
        f"{ADDRESS}:127.0.0.1:{place.port}",
        f"https://{ADDRESS}/up",
    ]
    for options in (
        ["-H", "Expect: 100-continue", "-T", str(tmp_path / "big")],
        ["-H", "Transfer-Encoding: chunked", "-T", str(tmp_path / "big")],
    ):
        found = subprocess.run([*base, *options], capture_output=True, check=True, timeout=60)
        assert b'"size": 2000000' in found.stdout
