"""Refusals of a real sshd and sudo: one login, their words, and what to do."""

from __future__ import annotations

import re

import pytest
from peers.machines import PASSWORD, running

from bfinfra.backends.ansible import LinuxHosts, connection
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Denied
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine

pytestmark = pytest.mark.packages


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with running(tmp_path_factory.mktemp("machines"), "one") as (found,):
        yield found


def refused(real, password=PASSWORD, sudo=PASSWORD) -> Denied:
    hosts = LinuxHosts(Transport())
    secret, own = (Secret("env", "P", Sources(env={"P": each})) for each in (password, sudo))
    machine = LinuxMachine(
        real.name,
        real.address,
        user="worker",
        password=secret,
        sudo_password=own,
        trust=HostTrust(sha256=real.sha256),
    )
    try:
        (found,) = hosts.read({machine: {"a": ("id",)}}).values()
    finally:
        hosts.close()
    assert isinstance(found, Denied), found
    return found


WAYS = {
    "password": "PasswordAuthentication yes\nKbdInteractiveAuthentication no\nUsePAM no\n",
    "both, by PAM": "PasswordAuthentication yes\nKbdInteractiveAuthentication yes\nUsePAM yes\n",
    "keyboard-interactive": "PasswordAuthentication no\nKbdInteractiveAuthentication yes\nUsePAM yes\n",
}


@pytest.fixture(params=WAYS)
def asks(request, real):
    """The machine asks for passwords so; its own settings come back."""
    place = "/etc/ssh/machine/config"

    def restart() -> None:
        real.run("systemctl", "reset-failed", "machine-sshd")  # else systemd finds it started too often
        real.run("systemctl", "restart", "machine-sshd")

    before = real.read(place)
    real.write(place, f"LogLevel VERBOSE\n{WAYS[request.param]}{before}")
    restart()
    yield request.param
    real.write(place, before)
    restart()


def failed_logins(real) -> int:
    return len(
        re.findall(r"Failed (?:password|keyboard)", real.run("journalctl", "-u", "machine-sshd", "-o", "cat"))
    )


def test_a_wrong_password_is_one_failed_login(real, asks):
    before = failed_logins(real)
    assert "login of worker is refused" in str(refused(real, "wrong"))
    assert failed_logins(real) - before == 1


def test_a_shell_that_shows_a_menu_is_named_with_its_words(real, monkeypatch):
    monkeypatch.setattr(connection, "LOGGING_IN", 10)
    real.write("/usr/local/bin/menu", "#!/bin/sh\necho '1) status  2) log out'\nexec cat\n")
    real.run("chmod", "755", "/usr/local/bin/menu")
    real.run("usermod", "--shell", "/usr/local/bin/menu", "worker")
    try:
        assert "1) status  2) log out" in " ".join(str(refused(real)).split("\n"))
    finally:
        real.run("usermod", "--shell", "/bin/bash", "worker")


def test_an_account_without_a_shell_says_so(real):
    real.run("usermod", "--shell", "/usr/sbin/nologin", "worker")
    try:
        assert "not available" in str(refused(real))
    finally:
        real.run("usermod", "--shell", "/bin/bash", "worker")


def test_an_expired_account_is_refused(real):
    real.run("usermod", "--expiredate", "1", "worker")
    try:
        assert "locked or expired" in str(refused(real))
    finally:
        real.run("usermod", "--expiredate", "", "worker")


@pytest.mark.parametrize(
    ("rule", "sudo", "step"),
    [
        ("worker ALL=(ALL) ALL\n", "wrong", "check sudo_password"),
        ("Defaults:worker requiretty\nworker ALL=(ALL) ALL\n", PASSWORD, "Defaults:worker !requiretty"),
        ("nobody ALL=(ALL) ALL\n", PASSWORD, "worker ALL=(ALL) ALL"),
        ("worker ALL=(ALL) /usr/bin/id\n", PASSWORD, "allow all commands"),
    ],
)
def test_each_refusal_of_sudo_has_its_own_next_step(real, rule, sudo, step):
    real.write("/etc/sudoers.d/worker", rule)
    assert step in str(refused(real, sudo=sudo))
