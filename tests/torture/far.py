"""An apply in a network namespace of its own, whose only way to the sandbox is a cable and a forwarder that
can fail.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kinds.lifecycle import EVERYTHING, endings, made

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.sandbox import Running, running
from bfinfra.sandbox.process import Running as Here

TESTS = Path(__file__).parents[1]
AT_ONCE = struct.pack("ii", 1, 0)  # closed so, a connection is reset


class Far(Here):
    """A sandbox seen from the namespace: each of its ports at the cable's other end."""

    gateway = ""

    def lookup(self, host: str, port: int) -> tuple[str, int] | None:
        found = super().lookup(host, port)
        return (self.gateway, found[1]) if found else None


@dataclass
class Forwarder:
    """Listens at `address` on each port that the sandbox listens on, and hands on what comes."""

    address: str
    state: Path
    away: bool = False
    over: bool = False
    listeners: dict[int, socket.socket] = field(default_factory=dict)
    lines: list[socket.socket] = field(default_factory=list)

    def serve(self) -> None:
        while not self.over:
            found = running(self.state)
            for port in (
                {int(real.rpartition(":")[2]) for real in found.addresses.values()} - self.listeners.keys()
                if found and not self.away
                else ()
            ):
                self.listeners[port] = socket.create_server((self.address, port))
                threading.Thread(target=self._accept, args=(self.listeners[port], port), daemon=True).start()
            time.sleep(0.02)

    def _accept(self, listener: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", port))
                self.lines += (near, far)
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()

    def drop(self) -> None:
        """Every connection is reset, and every new one refused."""
        self.away = True
        listeners, self.listeners = self.listeners, {}
        for listener in listeners.values():
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for line in self.lines:
            with contextlib.suppress(OSError):
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                line.shutdown(socket.SHUT_RD)
                line.close()
        self.lines.clear()

    def back(self) -> None:
        self.away = False


def _pump(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


@dataclass
class Cable:
    """A namespace, the pair of interfaces into it, and the forwarder at this end."""

    number: int
    forwarder: Forwarder

    @property
    def name(self) -> str:
        return f"bfo-{os.getpid()}-{self.number}"

    @property
    def ends(self) -> tuple[str, str]:
        return f"bfo{os.getpid() % 100000}{self.number:02}a", f"bfo{os.getpid() % 100000}{self.number:02}b"

    def cut(self, how: str) -> None:
        here, there = self.ends
        if how == "reset":
            self.forwarder.drop()
        elif how == "interfaces down":
            ip("link", "set", here, "down")
        else:
            tc("qdisc", "add", "dev", here, "root", "blackhole")
            subprocess.run(
                ["ip", "netns", "exec", self.name, "tc", "qdisc", "add", "dev", there, "root", "blackhole"],
                check=True,
            )

    def mend(self, how: str) -> None:
        here, there = self.ends
        if how == "reset":
            self.forwarder.back()
        elif how == "interfaces down":
            ip("link", "set", here, "up")
        else:
            tc("qdisc", "del", "dev", here, "root")
            subprocess.run(
                ["ip", "netns", "exec", self.name, "tc", "qdisc", "del", "dev", there, "root"], check=True
            )

    def apply(self, site: Path, state: Path, marker: Path, out: Path) -> subprocess.Popen[bytes]:
        command = [
            "ip",
            "netns",
            "exec",
            self.name,
            sys.executable,
            "-m",
            "torture.far",
            str(site),
            str(state),
            self.forwarder.address,
            str(marker),
        ]
        with out.open("wb") as to:
            return subprocess.Popen(
                command,
                stdout=to,
                stderr=to,
                env={
                    **os.environ,
                    "PYTHONPATH": str(TESTS),
                    "BFINFRA_STATE_HOME": str(marker.parent / "state"),
                },
            )


@contextlib.contextmanager
def cable(number: int, state: Path) -> Iterator[Cable]:
    """A cable to the sandbox on `state`; all of it goes at the end."""
    gateway, inside = f"10.213.{number}.1", f"10.213.{number}.2"
    made = Cable(number, Forwarder(gateway, state))
    here, there = made.ends
    ip("netns", "add", made.name)
    try:
        ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", made.name)
        ip("addr", "add", f"{gateway}/30", "dev", here)
        ip("link", "set", here, "up")
        ip("-n", made.name, "addr", "add", f"{inside}/30", "dev", there)
        ip("-n", made.name, "link", "set", there, "up")
        threading.Thread(target=made.forwarder.serve, daemon=True).start()
        yield made
    finally:
        made.forwarder.over = True
        ip("netns", "del", made.name)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def tc(*words: str) -> None:
    subprocess.run(["tc", *words], check=True)


def main(site: str, state: str, gateway: str, marker: str) -> int:
    """An apply as users have it, patience and all; `marker` comes to be when its plan is approved."""
    found = running(Path(state))
    assert found is not None
    Far.gateway = gateway
    far: Running = Far(**{name: getattr(found, name) for name in found.__dataclass_fields__})

    def approve(_: object) -> object:
        Path(marker).touch()
        return EVERYTHING

    outcome = bfinfra.apply(
        bfinfra.load(site, sandbox=far),
        approve=approve,
        options=Options(parallelism=2),
        context=bfinfra.RunContext(sandbox=far),
    )
    sys.stdout.write("\n".join(f"{key}: {ending}" for key, ending in endings(outcome).items()))
    return 0 if made(outcome) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
