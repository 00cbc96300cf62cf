"""vcsim processes of the benchmarks' own, started from the binaries of `script/peers build`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import fleet

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("PEERS_DIR") or Path.home() / ".cache/bfinfra-peers")
BIN = Path(os.environ.get("BFINFRA_PEERS_BIN") or PEERS / "bin")
GOVMOMI = " ".join(
    re.findall(r"github.com/vmware/(govmomi v\S+)", (HERE.parent / "tests/peers/go.mod").read_text())[:1]
)
USER = "administrator@vsphere.local"
PASSWORD = "of-the-benchmark-1!"


def binary(name: str) -> str:
    """The path of one of the peers' programs. SystemExit says what to do where there is none."""
    if not (BIN / name).exists():
        raise SystemExit(f"there is no {BIN / name}; build it with: script/peers build")
    return str(BIN / name)


@dataclass(frozen=True)
class Vcsim:
    """`address`: host:port; `direct`: the same without the delay in between."""

    address: str
    direct: str
    pid: int
    create: float = 0.0

    @property
    def pin(self) -> str:
        """The SHA-256 of its certificate."""
        host, _, port = self.direct.rpartition(":")
        return hashlib.sha256(
            ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))
        ).hexdigest()

    @property
    def govc(self) -> dict[str, str]:
        """The environment that leads govc to it."""
        return {
            "GOVC_URL": f"https://{self.address}/sdk",
            "GOVC_USERNAME": USER,
            "GOVC_PASSWORD": PASSWORD,
            "GOVC_INSECURE": "1",
            "GOVC_PERSIST_SESSION": "false",
        }

    def lead(self, site: Path) -> None:
        """Write address and pin into a site of fleet.HEAD."""
        head = site / "site.yaml"
        text = re.sub(r"server: .*", f'server: "{self.address}"', head.read_text())
        head.write_text(re.sub(r'sha256: "\w*"', f'sha256: "{self.pin}"', text))


@contextlib.contextmanager
def vcsim(*words: str, folder: Path | None = None) -> Iterator[Vcsim]:
    """Runs until the block is left. `folder`: where its datastores are."""
    command = [
        binary("vcsim"),
        "-l",
        "127.0.0.1:0",
        "-api-version",
        "8.0.3.0",
        *words,
        "-username",
        USER.partition("@")[0],
        "-password",
        PASSWORD,
    ]
    env = {**os.environ, "TMPDIR": str(folder)} if folder else None
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        try:
            yield _started(process)
        finally:
            process.terminate()


def _started(process: subprocess.Popen[str]) -> Vcsim:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"URL=https://.*@([\d.:]+)/sdk pid=\d+ create=([\d.]+)s", line):
            return Vcsim(found[1], found[1], process.pid, float(found[2]))
        print(line, end="", file=sys.stderr)
    raise SystemExit(f"vcsim does not start; build it with: script/peers build (looked for {BIN})")


@contextlib.contextmanager
def fleet_of(servers: int, folder: Path) -> Iterator[Vcsim]:
    """A vcsim with so many servers, and their site in folder/site."""
    subprocess.run([sys.executable, str(HERE / "fleet.py"), str(servers), str(folder)], check=True)
    with vcsim(*fleet.vcsim_words(servers), "-fleet", str(folder / "fleet.json")) as running:
        yield running


class Delay:
    """The delay in the path, and what it counted."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address

    def counts(self) -> dict[str, int]:
        """connections, turns (round trips after the handshake), up, down (bytes) since its start."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        _say(self.process.stdin)
        return dict(json.loads(self.process.stdout.readline()))


def _say(stream: IO[str]) -> None:
    stream.write("\n")
    stream.flush()


@contextlib.contextmanager
def delayed(server: Vcsim, milliseconds: float) -> Iterator[tuple[Vcsim, Delay]]:
    """The same server, further away."""
    with path_to(server.direct, milliseconds) as delay:
        yield replace(server, address=delay.address), delay


@contextlib.contextmanager
def path_to(address: str, milliseconds: float = 0) -> Iterator[Delay]:
    """A way to any server of TCP, which counts what passes."""
    command = [sys.executable, str(HERE / "delay.py"), address, str(milliseconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Delay(process, f"127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.terminate()
