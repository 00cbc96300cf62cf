from __future__ import annotations

import io
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import upload
from bfinfra.backends.vcenter.keepalive import KeepAlive
from bfinfra.model.errors import Missing, Rejected, Unanswered
from bfinfra.model.trust import Trust

MIB = 1 << 20
SIZES = {"disk1.vmdk": 3 * MIB, "disk2.vmdk": 5 * MIB}
DATA = {name: bytes([n]) * size for n, (name, size) in enumerate(SIZES.items())}


@dataclass
class Host:
    """Takes uploads as an ESXi host does; `cuts`: after how many bytes the next connections end, None = not
    at all; `answers` likewise.
    """

    url: str
    pem: str
    cuts: list[int | None] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    came: list[tuple[str, int]] = field(default_factory=list)

    def serve(self, connection: ssl.SSLSocket) -> None:
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(1)
            size = next(
                int(line.partition(b":")[2])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            cut = self.cuts.pop(0) if self.cuts else None
            left = size if cut is None else cut
            while left > 0 and (block := connection.recv(min(left, MIB))):
                left -= len(block)
            self.came.append((head.split()[1].decode(), (size if cut is None else cut) - left))
            if cut is None:
                connection.sendall(
                    self.answers.pop(0) if self.answers else b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
                )
            else:
                connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )  # a reset, as a firewall sends it


@pytest.fixture
def host(own_certificate) -> Iterator[Host]:
    pem, both = own_certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Host(f"https://127.0.0.1:{listener.getsockname()[1]}", pem)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    made.serve(context.wrap_socket(connection, server_side=True))

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def sent(
    host: Host, monkeypatch: pytest.MonkeyPatch, source: Any = lambda name: io.BytesIO(DATA[name])
) -> list[tuple[int, int]]:
    """What is reported while both disks are sent."""
    monkeypatch.setattr(upload, "PAUSE", 0.001)
    seen: list[tuple[int, int]] = []
    transport = Transport()
    items = [SimpleNamespace(path=name, create=False) for name in SIZES]
    with KeepAlive(lambda _: None, 300) as alive:
        made = upload.Upload(
            transport, lambda _: Trust(ca_pem=host.pem), alive, lambda done, total: seen.append((done, total))
        )
        made.run(items, [httpx2.URL(f"{host.url}/nfc/1/{name}") for name in SIZES], SIZES, source)
    transport.close()
    return seen


def test_files_go_one_after_the_other_and_progress_is_that_of_all(host, monkeypatch):
    seen = sent(host, monkeypatch)
    assert host.came == [("/nfc/1/disk1.vmdk", 3 * MIB), ("/nfc/1/disk2.vmdk", 5 * MIB)]
    assert seen == [(n * MIB, 8 * MIB) for n in range(1, 9)]


def test_only_the_file_that_was_cut_off_is_sent_again(host, monkeypatch):
    host.cuts = [None, 4 * MIB]
    seen = sent(host, monkeypatch)
    assert host.came == [
        ("/nfc/1/disk1.vmdk", 3 * MIB),
        ("/nfc/1/disk2.vmdk", 4 * MIB),
        ("/nfc/1/disk2.vmdk", 5 * MIB),
    ]
    assert (seen[-1], seen.count((3 * MIB, 8 * MIB))) == ((8 * MIB, 8 * MIB), 2), (
        "back to where the file began"
    )


def test_after_four_times_it_is_given_up(host, monkeypatch):
    host.cuts = [1000] * 9
    with pytest.raises(Unanswered):
        sent(host, monkeypatch)
    assert len(host.came) == upload.TIMES


def test_a_host_that_is_busy_is_asked_again_and_one_that_refuses_is_not(host, monkeypatch):
    host.answers = [b"HTTP/1.1 503 no\r\ncontent-length: 0\r\nretry-after: 0\r\n\r\n"]
    sent(host, monkeypatch)
    assert len(host.came) == 3
    host.answers = [b"HTTP/1.1 404 no\r\ncontent-length: 0\r\n\r\n"]
    with pytest.raises(Missing):
        sent(host, monkeypatch)
    assert len(host.came) == 4


def test_a_source_that_ends_early_is_an_error_of_its_own(host, monkeypatch):
    with pytest.raises(Rejected, match="ended after 10 of 3145728 bytes"):
        sent(host, monkeypatch, lambda name: io.BytesIO(DATA[name][:10]))


def test_a_lease_that_ends_while_a_file_waits_to_be_sent_again_ends_the_wait(host, monkeypatch):
    host.cuts = [1000] * 9
    monkeypatch.setattr(
        KeepAlive, "wait", lambda self, _: (_ for _ in ()).throw(Missing("the lease is gone"))
    )
    with pytest.raises(Missing):
        sent(host, monkeypatch)
    assert len(host.came) == 1
