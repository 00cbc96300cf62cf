"""The run's own ssh-agent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bfinfra.backends.ansible import folder
from bfinfra.backends.ansible.agent import Agent
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources

SLOW_AGENT = """
import signal, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[-1])  # the file is there
time.sleep(0.3)
server.listen()
signal.pause()
"""
ADD = """
import os, socket
socket.socket(socket.AF_UNIX).connect(os.environ["SSH_AUTH_SOCK"])
"""


@pytest.mark.enable_socket
def test_a_key_waits_until_the_agent_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("ssh-agent", SLOW_AGENT), ("ssh-add", ADD)):
        (tmp_path / name).write_text(f"#!{sys.executable}\n{text}")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    pem = (
        Ed25519PrivateKey.generate()
        .private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        .decode()
    )
    home = folder.make()  # a socket's path has 108 bytes, and a test's own folder may be deep
    agent = Agent(home)
    try:
        assert (
            agent.add(Secret("env", "KEY", Sources(env={"KEY": pem}))).read_text().startswith("ssh-ed25519 ")
        )
    finally:
        agent.close()
        folder.remove(home)
