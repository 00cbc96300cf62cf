"""A small world and a plain HTTP listener for the SOAP doors alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from types import SimpleNamespace as Namespace
from typing import Any

from bfinfra.sandbox.door import Door, Request

GIB = 1 << 30


def gpu(address: str) -> Namespace:
    """A V100 of 32 GiB at a PCI address."""
    return Namespace(id=address, vendor=0x10DE, device=0x1DB6, name="GV100GL [Tesla V100 PCIe 32GB]", class_=0x0302, memory=32 * GIB)


def host(*pci: Namespace) -> Namespace:
    """An ESXi host."""
    return Namespace(cores=40, mhz=2500, memory=768 * GIB, pci=pci)


def world(**changes: Any) -> Any:
    """The site of the examples: a GPU cluster and a compute cluster."""
    found = Namespace(
        pace=0.0, durations={"task": 0.05, "boot": 0.05, "lease": 300},
        vcenter=Namespace(host="vcsa.aiml.local", version="8.0.3.0", instance_uuid="6f0b9c2e-0000-4000-8000-000000000001"),
        users=[
            Namespace(name="administrator@aiml.local", password="VMware1!", groups=(), role="admin"),
            Namespace(name="viewer@aiml.local", password="look", groups=(), role="readonly"),
            Namespace(name="operator@aiml.local", password="some", groups=(), role=("VirtualMachine.Interact.PowerOn",)),
        ],
        datacenter="Singapore",
        clusters={
            "gpu-farm": Namespace(hosts={"esx209-161.aiml.local": host(gpu("0000:3b:00.0"), gpu("0000:af:00.0"))}),
            "compute": Namespace(hosts={f"esx209-16{n}.aiml.local": host() for n in (2, 3, 4)}),
        },
        datastores={"gpu-local": Namespace(capacity=4 << 40, hosts=(), clusters=("gpu-farm",)), "vsan": Namespace(capacity=20 << 40, hosts=(), clusters=())},
        networks=["VM Network", "rdma"],
    )
    found.__dict__.update(changes)
    return found


@contextmanager
def served(door: Door) -> Iterator[int]:
    """The door behind plain HTTP on a loopback port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = door(Request(self.command, path, query, headers, BytesIO(self.body(headers)), f"vcsa.aiml.local:{server.server_port}"))
            body = response.body if isinstance(response.body, bytes) else b"".join(response.body)
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def body(self, headers: dict[str, str]) -> bytes:
            if headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(headers.get("content-length", 0)))
            found = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        do_GET = do_POST = do_PUT = answer  # noqa: N815 - http.server's names

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
