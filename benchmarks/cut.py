"""What a connection that is cut at 90 % of an OVA's bytes costs, beside govc: .venv/bin/python
benchmarks/cut.py [MIB [DISKS ...]]   (256, of 1 and 3)

All goes to vcsim through a proxy that counts what clients send and resets one connection, once, when 90 % of
the file went through. bfinfra's child makes the same call as a deployment. govc ends there; its user starts
it again, under another name, as vcsim keeps what it left.
"""

from __future__ import annotations

import contextlib
import platform
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import given
import upload
import vcsims
from upload import MIB
from vcsims import Vcsim

SHARE = 0.9


class Proxy:
    """Leads from the address of `server` to the one `behind`. `arm` counts anew; `sent`: bytes from clients
    since then.
    """

    def __init__(self, behind: Vcsim) -> None:
        host, _, port = behind.direct.rpartition(":")
        self._behind, self._listener, self._lock = (
            (host, int(port)),
            socket.create_server(("127.0.0.1", 0)),
            threading.Lock(),
        )
        self.server = replace(behind, address=f"127.0.0.1:{self._listener.getsockname()[1]}")
        self.sent, self._cut = 0, 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: float) -> None:
        """From now on count, and cut once at this many bytes."""
        with self._lock:
            self.sent, self._cut = 0, cut

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._behind)
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(1 << 18):
                if counted and self._over(len(block)):
                    for each in (source, sink):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        each.close()
                    return
                sink.sendall(block)
            sink.shutdown(socket.SHUT_WR)

    def _over(self, size: int) -> bool:
        with self._lock:
            self.sent += size
            if self._cut and self.sent >= self._cut:
                self._cut = 0
                return True
            return False


@contextlib.contextmanager
def world(folder: Path) -> Iterator[Proxy]:
    """A vcsim that says of itself the proxy's address."""
    with vcsims.vcsim(*upload.WORLD, folder=folder) as server:
        proxy = Proxy(server)
        upload.govc(server, "option.set", "vcsim.server.url", f"https://{proxy.server.address}")
        yield proxy


def by_govc(proxy: Proxy, path: Path, name: str) -> int:
    """How often it had to be started."""
    for start in range(1, 10):
        with contextlib.suppress(subprocess.CalledProcessError):
            upload.by_govc(proxy.server, path, f"{name}-{start}")
            return start
    raise SystemExit("govc never came through")


def by_bfinfra(proxy: Proxy, path: Path, name: str) -> int:
    """As above."""
    upload.by_bfinfra(upload.task_of(proxy.server, path), name)
    return 1


def main() -> None:
    asked = given.numbers(__doc__, mib=256, disks=(1, 3))
    size = asked.mib
    print(
        f"bfinfra {version('bfinfra')}, Python {platform.python_version()}; govc and vcsim of "
        f"{vcsims.GOVMOMI}; cut once, at {SHARE:.0%} of the bytes"
    )
    print(f"{'file':>10}{'disks':>7}  {'':<10}{'started':>8}{'sent':>12}{'sent again':>14}")
    with tempfile.TemporaryDirectory() as name, world(Path(name)) as proxy:
        for disks in asked.disks:
            path = Path(name) / f"of-{disks}.ova"
            upload.make(path, size * MIB, disks)
            for who, does in (("bfinfra", by_bfinfra), ("govc", by_govc)):
                proxy.arm(SHARE * size * MIB)
                started = does(proxy, path, f"{who}-{disks}")
                print(
                    f"{size:>6} MiB{disks:>7}  {who:<10}{started:>8}{proxy.sent / MIB:>8.0f} "
                    f"MiB{proxy.sent / MIB - size:>7.0f} MiB{(proxy.sent / MIB - size) / size:>5.0%}"
                )
            path.unlink()


if __name__ == "__main__":
    main()
