"""Real machines by SSH: pins, logins, reading in bulk, plays side by side with one failing, secrets that stay
hidden, nothing left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from peers.machines import PASSWORD, running

from bfinfra.backends.ansible import LinuxHosts
from bfinfra.backends.transport import Transport, WriteRefused
from bfinfra.model import subprocesses
from bfinfra.model.errors import Denied, Rejected, Unreachable, Untrusted
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile, Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine, Play

pytestmark = pytest.mark.packages
LICENSE = "BF-1234-secret-license-key"
TASKS = [
    {
        "name": "write",
        "ansible.builtin.copy": {"content": "{{ line }}\n", "dest": "/etc/example.conf", "mode": "0644"},
    },
    {
        "name": "secret",
        "ansible.builtin.copy": {
            "content": "{{ bfinfra_secrets.license }}\n",
            "dest": "/etc/example.license",
            "mode": "0600",
        },
        "no_log": True,
    },
    {
        "name": "maybe",
        "ansible.builtin.command": {
            "argv": ["/bin/sh", "-c", "echo 'it broke: {{ bfinfra_secrets.license }}' >&2; exit 3"]
        },
        "when": "broken | default(false)",
    },
]


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with running(tmp_path_factory.mktemp("machines"), "one", "two", "three") as found:
        yield found


@pytest.fixture
def hosts():
    made = LinuxHosts(Transport())
    yield made
    made.close()


@pytest.fixture
def role(tmp_path):
    (tmp_path / "roles/example/tasks").mkdir(parents=True)
    (tmp_path / "roles/example/tasks/main.yml").write_text(yaml.safe_dump(TASKS))
    return tmp_path / "roles"


@pytest.fixture
def secret(tmp_path):
    (tmp_path / "license").write_text(LICENSE)
    return Secret("file", "license", Sources(tmp_path))


def machine(real, **how) -> LinuxMachine:
    how = {
        "user": "root",
        "key": Secret("file", str(real.private)),
        "trust": HostTrust(sha256=real.sha256),
        **how,
    }
    return LinuxMachine(real.name, real.address, **how)


def worker(real, tmp_path, **how) -> LinuxMachine:
    (tmp_path / "password").write_text(PASSWORD)
    password = Secret("file", "password", Sources(tmp_path))
    return machine(real, user="worker", key=None, password=password, **{"sudo_password": password, **how})


def test_many_commands_are_one_connection_and_one_command_a_machine(real, hosts):
    wanted = {
        machine(each): {
            "who": ["id", "-un"],
            "os": ["cat", "/etc/os-release"],
            "none": ["cat", "/nowhere"],
            "odd": ["printf", "%s", "a 'b' $c"],
        }
        for each in real
    }
    before = [each.read("/proc/uptime") for each in real]
    for found in hosts.read(wanted).values():
        assert found["who"].text == "root\n"
        assert "ID=debian" in found["os"].text
        assert (found["none"].code, found["odd"].text) == (1, "a 'b' $c")
    hosts.read(wanted)
    assert before
    for each in real:
        assert each.run("pgrep", "-fc", "sshd: root@notty").strip() == "1"


def test_a_machine_with_another_key_than_the_pinned_one_is_not_logged_in_to(real, hosts):
    stranger = machine(real[0], trust=HostTrust(sha256=real[1].sha256))
    found = hosts.read({stranger: {"who": ["id"]}})[stranger]
    assert isinstance(found, Untrusted)
    assert real[0].sha256 in str(found)


def test_a_known_hosts_file_pins_as_well_and_one_without_the_machine_trusts_nobody(real, hosts, tmp_path):
    (tmp_path / "known").write_text(f"{real[0].address} {real[0].public_host_key}")
    file = LocalFile("known", tmp_path / "known")
    good, bad = (
        machine(real[0], trust=HostTrust(known_hosts=file)),
        machine(real[1], trust=HostTrust(known_hosts=file)),
    )
    found = hosts.read({good: {"who": ["id", "-un"]}, bad: {"who": ["id", "-un"]}})
    assert found[good]["who"].text == "root\n"
    assert isinstance(found[bad], Untrusted)


def test_a_password_logs_in_and_sudo_takes_its_own(real, hosts, tmp_path):
    good = worker(real[0], tmp_path)
    assert hosts.read({good: {"who": ["id", "-un"]}})[good]["who"].text == "root\n"
    (tmp_path / "wrong").write_text("something else")
    wrong = replace(good, password=Secret("file", "wrong", Sources(tmp_path)))
    assert isinstance(hosts.read({wrong: {"who": ["id"]}})[wrong], Denied)
    no_root = replace(good, sudo_password=None)
    assert isinstance(found := hosts.read({no_root: {"who": ["id"]}})[no_root], Denied)
    assert "sudo" in str(found)


def test_what_is_not_there_is_unreachable_and_the_others_answer(real, hosts):
    gone = replace(machine(real[0]), address="127.0.0.1", port=1)
    found = hosts.read({machine(real[1]): {"who": ["id", "-un"]}, gone: {"who": ["id"]}})
    assert isinstance(found[gone], Unreachable)
    assert found[machine(real[1])]["who"].text == "root\n"


def test_one_machine_fails_and_the_others_are_done_and_no_secret_is_shown(real, hosts, role, secret):
    wanted = Play(
        "example",
        {machine(each): {"line": each.name, "broken": each.name == "two"} for each in real},
        roles=role,
        secrets={"license": secret},
    )
    played = hosts.play(wanted)
    assert set(played.failed) == {"two"}
    assert played.changed == {"one": 2, "two": 2, "three": 2}
    assert "it broke: [secret]" in played.failed["two"]
    with pytest.raises(Rejected) as caught:
        played.check()
    assert "two" in str(caught.value)
    assert LICENSE not in f"{caught.value}{played}"
    assert [each.read("/etc/example.conf") for each in real] == ["one\n", "two\n", "three\n"]
    assert real[2].read("/etc/example.license") == f"{LICENSE}\n"


def test_check_mode_writes_nothing_and_a_second_run_changes_nothing(real, hosts, role, secret, tmp_path):
    both = Play(
        "example",
        {machine(real[0]): {"line": "here"}, worker(real[2], tmp_path): {"line": "there"}},
        roles=role,
        secrets={"license": secret},
    )
    earlier = {each: {"line": "before"} for each in both.machines}
    assert not hosts.play(Play("example", earlier, roles=role, secrets={"license": secret})).failed
    before = [each.written() for each in real]
    result = hosts.play(both, check=True)
    assert not result.failed
    assert result.changed["one"] == 1
    assert [each.written() for each in real] == before
    assert not hosts.play(both).failed
    after = [each.written() for each in real]
    assert after[0] != before[0]
    again = hosts.play(both)
    assert (again.changed, again.failed) == ({"one": 0, "three": 0}, {})
    assert [each.written() for each in real] == after
    assert real[2].read("/etc/example.conf") == "there\n"


def test_a_run_that_only_reads_plays_nothing_but_check_mode(real, hosts, role, secret):
    earlier = Play("example", {machine(real[0]): {"line": "before"}}, roles=role, secrets={"license": secret})
    assert not hosts.play(earlier).failed
    hosts = LinuxHosts(Transport(read_only=True))
    wanted = Play("example", {machine(real[0]): {"line": "other"}}, roles=role, secrets={"license": secret})
    try:
        with pytest.raises(WriteRefused):
            hosts.play(wanted)
        assert hosts.play(wanted, check=True).changed["one"] == 1
    finally:
        hosts.close()


def test_a_role_that_is_not_there_and_a_machine_that_is_not_there_are_named(real, hosts, role):
    gone = replace(
        machine(real[0], trust=HostTrust(sha256=real[0].sha256)), name="gone", address="127.0.0.1", port=1
    )
    played = hosts.play(Play("example", {gone: {}, machine(real[1]): {"line": "x"}}, roles=role))
    assert set(played.failed) >= {"gone"}


def test_nothing_is_left_and_no_secret_is_in_a_file_or_on_a_command_line(
    real, role, secret, tmp_path, monkeypatch, request
):
    place = Path(short(request))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    hosts = LinuxHosts(Transport())
    seen = []
    original = subprocesses.run

    def watch(*args, **how):
        seen.extend(path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
        seen.extend(path.read_bytes() for path in place.rglob("*") if path.is_file())
        done = original(*args, **how)
        seen.extend(path.read_bytes() for path in place.rglob("*") if path.is_file())
        return done

    monkeypatch.setattr(subprocesses, "run", watch)
    played = hosts.play(
        Play("example", {worker(real[1], tmp_path): {"line": "z"}}, roles=role, secrets={"license": secret})
    )
    assert not played.failed
    key = real[1].private.read_bytes().splitlines()[-2]
    assert seen
    for hidden in (LICENSE.encode(), PASSWORD.encode(), key):
        assert not any(hidden in each for each in seen)
    hosts.close()
    assert not list(place.iterdir())


def short(request) -> str:
    """A folder whose path leaves room for that of a socket."""
    place = tempfile.mkdtemp(prefix="bf-")
    request.addfinalizer(lambda: shutil.rmtree(place))
    return place


KILLED = """
import sys; sys.path.insert(0, {tests!r})
from bfinfra.backends.ansible import LinuxHosts
from bfinfra.backends.transport import Transport
from bfinfra.model.secret import Secret
from bfinfra.model.ssh import HostTrust, LinuxMachine, Play
from pathlib import Path
m = LinuxMachine("one", {address!r}, "root", HostTrust(sha256={sha256!r}), key=Secret("file", {key!r}))
LinuxHosts(Transport()).play(Play("slow", {{m: {{}}}}, roles=Path({roles!r})))
"""


def test_nothing_of_a_killed_run_goes_on_and_the_next_run_clears_up(real, role, request):
    place = short(request)
    (role / "slow/tasks").mkdir(parents=True)
    tasks = [
        {
            "name": f"{n}",
            "ansible.builtin.command": {"argv": ["/bin/sh", "-c", f"echo {n} >> /run/slow; sleep 1"]},
        }
        for n in range(20)
    ]
    (role / "slow/tasks/main.yml").write_text(yaml.safe_dump(tasks))
    code = KILLED.format(
        tests=str(Path(__file__).parents[1]),
        address=real[0].address,
        sha256=real[0].sha256,
        key=str(real[0].private),
        roles=str(role),
    )
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": place})
    limit = time.monotonic() + 30
    while "slow" not in real[0].run("ls", "/run"):
        assert child.poll() is None and time.monotonic() < limit
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    time.sleep(2.5)  # the task that was running may end
    done = real[0].read("/run/slow")
    time.sleep(1.5)
    assert real[0].read("/run/slow") == done
    assert not [
        line
        for line in subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if place in line
    ]
    assert len(list(Path(place).glob("bfinfra-ssh-*"))) == 1
    next_run = {**os.environ, "TMPDIR": place}
    subprocess.run(
        [sys.executable, "-c", "from bfinfra.backends.ansible import folder; folder.remove(folder.make())"],
        env=next_run,
        check=True,
    )
    assert not list(Path(place).iterdir())
