from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trust.authority import Authority, Shown
from trust.listening import Listening, listening
from vcsim_peer import Vcsim


@dataclass
class Echo:
    """A TLS server on loopback that answers every request with what `answers` says, and keeps what it got."""

    shown: Shown
    server: Listening

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def pem(self) -> str:
        return self.shown.pem

    @property
    def both(self) -> Path:
        """Its certificate with the key, which it also takes from its clients."""
        return self.shown.file

    @property
    def pin(self) -> str:
        return self.shown.sha256

    @property
    def answers(self) -> dict[str, Any]:
        return self.server.answers

    @property
    def asked(self) -> list[tuple[str, str, bytes]]:
        return [(method, path, body) for method, path, _, body in self.server.asked]

    @property
    def met(self) -> list[bool]:
        return self.server.met


@pytest.fixture
def own_certificate(tmp_path: Path) -> tuple[str, Path]:
    """A certificate for 127.0.0.1 as PEM, and a file with its key."""
    shown = Authority(tmp_path).leaf(own=True)
    return shown.pem, shown.file


@pytest.fixture
def echo_named(tmp_path: Path) -> Iterator[Callable[..., Echo]]:
    """A maker of Echo servers; the argument is the name in the certificate."""
    with contextlib.ExitStack() as servers:

        def make(name: str = "127.0.0.1") -> Echo:
            shown = Authority(tmp_path).leaf(name, own=True)
            return Echo(shown, servers.enter_context(listening(shown.file)))

        yield make


@pytest.fixture
def echo(echo_named) -> Echo:
    return echo_named()


@pytest.fixture(scope="module")
def vcsim(peers):
    """A vcsim of its own for each module: four hosts with two GPUs each."""
    command = [
        str(peers.bin / "vcsim"),
        "-l",
        "127.0.0.1:0",
        "-api-version",
        "8.0.3.0",
        "-gpus",
        "2",
        "-shim",
        "-vm",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("URL="))
            yield Vcsim.at(line)
        finally:
            process.kill()
