from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
import ssl
import subprocess
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from vcsim_peer import Vcsim


@dataclass
class Echo:
    """A TLS server on loopback that answers every request with what `answers` says, and keeps what it got."""

    port: int
    pem: str
    asked: list[tuple[str, str, bytes]]
    answers: dict[str, Any]
    both: Path  # its certificate with the key, which it also takes from its clients
    met: list[bool]  # for each request, whether its client showed a certificate

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def pin(self) -> str:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.pem)).hexdigest()


def certificate(folder: Path, name: str = "127.0.0.1") -> tuple[str, Path]:
    """A self-signed certificate for `name` (and 127.0.0.1); its PEM, and a file with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    if name != "127.0.0.1":
        names = [x509.DNSName(name)]
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1)).add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    both = folder / f"{made.serial_number}.pem"
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    both.write_bytes(pem + secret)
    return pem.decode(), both


@pytest.fixture
def own_certificate(tmp_path) -> tuple[str, Path]:
    """A certificate for 127.0.0.1 as PEM, and a file with its key."""
    return certificate(tmp_path)


@pytest.fixture
def echo_named(tmp_path):
    """A maker of Echo servers; the argument is the name in the certificate."""
    servers = []

    def make(name: str = "127.0.0.1") -> Echo:
        pem, file = certificate(tmp_path, name)
        echo = Echo(0, pem, [], {}, file, [])

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                echo.asked.append((self.command, self.path, body))
                echo.met.append(bool(self.connection.getpeercert()))
                status, data, headers = echo.answers.get(self.path, (200, b"{}", {}))
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                for key, value in {"content-length": str(len(data)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_one  # noqa: N815 - the names that http.server calls

            def log_message(self, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=pem)
        context.verify_mode, context.verify_flags = ssl.CERT_OPTIONAL, context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # a refused handshake is what some tests are about
        server.block_on_close = False
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        echo.port = server.server_address[1]
        return echo

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def echo(echo_named) -> Echo:
    return echo_named()


@pytest.fixture(scope="module")
def vcsim(peers):
    """A vcsim of its own for each module: four hosts with two GPUs each."""
    command = [str(peers.bin / "vcsim"), "-l", "127.0.0.1:0", "-api-version", "8.0.3.0", "-gpus", "2", "-shim", "-vm", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("URL="))
            yield Vcsim.at(line)
        finally:
            process.kill()
