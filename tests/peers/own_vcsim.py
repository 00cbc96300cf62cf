"""A vcsim of a test's own, from the binary of the peers."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from peers.found import USER, Peers
from pyVim.connect import Disconnect, SmartConnect

WORLD = (
    *("-api-version", "8.0.3.0", "-shim", "-wcp"),
    *("-cluster", "2", "-host", "3", "-standalone-host", "0", "-vm", "0", "-gpus", "2"),
)
"""As script/peers starts the shared one."""


@contextmanager
def started(peers: Peers, *words: str) -> Iterator[Peers]:
    """The peers with a vcsim that runs for as long as it is needed: a second or less until it serves. `words`:
    further ones of its command line.
    """
    account = ("-username", USER.partition("@")[0], "-password", peers.password)
    command = [str(peers.bin / "vcsim"), "-l", "127.0.0.1:0", *WORLD, *words, *account]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            output: list[str] = []
            for line in process.stdout:
                output.append(line)
                if line.startswith("URL="):
                    break
            else:
                raise AssertionError(f"vcsim does not start: {''.join(output)}")
            yield replace(peers, vcsim=output[-1].split("@")[-1].split("/")[0])
        finally:
            process.kill()


@contextmanager
def session(peers: Peers) -> Iterator[Any]:
    """A pyVmomi session of somebody else on it."""
    host, _, port = peers.vcsim.rpartition(":")
    trust = ssl.create_default_context(cadata=ssl.get_server_certificate((host, int(port))))
    si = SmartConnect(host=host, port=int(port), user=USER, pwd=peers.password, sslContext=trust)
    try:
        yield si
    finally:
        Disconnect(si)
