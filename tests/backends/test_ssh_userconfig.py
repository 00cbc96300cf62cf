"""~/.ssh/config isn't used. Where a machine can't be reached and the file has a way to it, the error says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from bfinfra.backends.ansible import LinuxHosts, userconfig
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Unreachable
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine

CONFIG = """\
# gateways
User everybody
Host gpu-* !gpu-9
    ProxyJump me@bastion.test:2200,inner.test
Host=training
  HostName = "10.0.0.7"
  Port 2022
Match host secret exec "touch /tmp/never"
    ProxyJump evil.test
Host 10.0.0.8
\tproxycommand nc -X connect %h %p
Host direct
    ProxyJump none
Host gpu-1
    ProxyJump later.test
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (file := tmp_path / ".ssh/config").write_text(CONFIG)
    return file


@pytest.mark.parametrize(
    ("address", "why", "instead"),
    [
        (
            "gpu-1",
            "ProxyJump me@bastion.test:2200,inner.test (line 4)",
            "ssh -N -J me@bastion.test:2200 -L 2222:gpu-1:22 -- inner.test",
        ),
        ("GPU-1", "ProxyJump me@bastion.test:2200,inner.test (line 4)", "-L 2222:GPU-1:22 -- inner.test"),
        ("10.0.0.8", "proxycommand nc -X connect %h %p (line 11)", "-L 2222:10.0.0.8:22 -- THE-HOST-BETWEEN"),
        (
            "training",
            "HostName 10.0.0.7 (line 6), Port 2022 (line 7), User everybody (line 2)",
            "write these as address, port, user of the machine",
        ),
        ("10.0.0.7", "Port 2022 (line 7)", "write these as address, port, user"),
        ("gpu-9", "User everybody (line 2)", "write these as user of the machine"),
    ],
)
def test_what_the_file_has_for_a_machine_is_said_with_its_line(
    config: Path, address: str, why: str, instead: str
) -> None:
    said, step = userconfig.unread(address, 22)
    assert said.startswith("~/.ssh/config, which isn't read, has for it: ")
    assert why in said
    assert instead in step


@pytest.mark.parametrize("address", ["secret", "direct", "other"])
def test_nothing_is_said_where_the_file_has_no_way(config: Path, address: str) -> None:
    config.write_text(CONFIG.replace("User everybody\n", ""))
    assert userconfig.unread(address, 22) == ("", "")


@pytest.mark.parametrize(
    "content",
    [b"Host *\nProxyJump x" + b"#" * userconfig.LARGEST, b"\xff\xfe\x00", b"Host [a-z\nProxyJump [\n", b""],
)
def test_a_file_that_is_large_or_no_text_or_nonsense_says_nothing(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    assert userconfig.unread("gpu-1", 22) == ("", "")


def test_a_file_that_never_ends_is_not_read(config: Path) -> None:
    config.unlink()
    config.symlink_to("/dev/zero")
    assert userconfig.unread("gpu-1", 22) == ("", "")


def test_values_are_printed_without_control_characters_and_in_part(config: Path) -> None:
    config.write_text("Host *\nProxyCommand \x1b[31m$(reboot) " + "x" * 500)
    said, step = userconfig.unread("gpu-1", 22)
    assert "\x1b" not in said
    assert len(said) < 200
    assert "reboot" not in step


def test_a_machine_that_can_not_be_reached_names_the_jump_of_the_file(config: Path) -> None:
    config.write_text("Host 127.0.0.1\nProxyJump bastion.test\n")
    key = Secret("env", "P", Sources(env={"P": "p"}))
    machine = LinuxMachine(
        "gpu", "127.0.0.1", "root", HostTrust(sha256=f"SHA256:{'A' * 43}"), 1, password=key
    )
    hosts = LinuxHosts(Transport())
    try:
        (found,) = hosts.read({machine: {"a": ("id",)}}).values()
    finally:
        hosts.close()
    assert isinstance(found, Unreachable)
    assert "no SSH server shows a key" in str(found)
    assert "which isn't read, has for it: ProxyJump bastion.test (line 2)" in str(found)
    assert "ssh -N -L 2222:127.0.0.1:1 -- bastion.test" in str(found)
