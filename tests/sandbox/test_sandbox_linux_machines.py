"""The sandbox's Linux machines, asked by OpenSSH's own client and by Ansible: what they do, and what they
refuse by name.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_input import corpus

from bfinfra.backends.ansible import LinuxHosts
from bfinfra.backends.transport import Transport
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import HostTrust, LinuxMachine, Play
from bfinfra.sandbox import Running

TASKS = [
    {"name": "folder", "ansible.builtin.file": {"path": "/etc/bitfusionio", "state": "directory"}},
    {
        "name": "file",
        "ansible.builtin.copy": {
            "content": "10.5.0.1\n",
            "dest": "/etc/bitfusionio/servers.conf",
            "mode": "0644",
        },
    },
    {
        "name": "package",
        "ansible.builtin.copy": {"src": "{{ package }}", "dest": "/var/cache/flexdirect.deb"},
    },
    {
        "name": "install",
        "ansible.builtin.command": {
            "argv": [
                "apt-get",
                "install",
                "-o",
                "DPkg::Lock::Timeout=600",
                "--yes",
                "/var/cache/flexdirect.deb",
            ],
            "creates": "/usr/bin/flexdirect",
        },
    },
    {
        "name": "broken",
        "ansible.builtin.lineinfile": {"path": "/etc/hosts", "line": "x"},
        "when": "broken | default(false)",
    },
]


FOLDERS = [{"name": "folder", "ansible.builtin.file": {"path": "/var/cache/bfinfra", "state": "directory"}}]


def ssh(
    sandbox: Running, user: str, *words: str, known: str = "ssh/known_hosts"
) -> subprocess.CompletedProcess[str]:
    """OpenSSH's client with nobody's settings."""
    found = sandbox.lookup("10.5.0.11", 22)
    assert found
    options = {
        "HostName": found[0],
        "Port": found[1],
        "HostKeyAlias": "10.5.0.11",
        "UserKnownHostsFile": sandbox.files / known,
        "BatchMode": "yes",
        "IdentityFile": sandbox.files / "ssh/id_ed25519",
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "yes",
    }
    command = [
        "ssh",
        "-F",
        "none",
        *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        f"{user}@machine",
        *words,
    ]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


def machine(sandbox: Running, name: str, address: str) -> LinuxMachine:
    trust = HostTrust(known_hosts=LocalFile("known_hosts", sandbox.files / "ssh/known_hosts"))
    return LinuxMachine(
        name, address, "root", trust, key=Secret("file", str(sandbox.files / "ssh/id_ed25519"))
    )


def roles(folder: Path, tasks: list[Any]) -> Path:
    """A role `example`."""
    (folder / "roles/example/tasks").mkdir(parents=True)
    (folder / "roles/example/tasks/main.yml").write_text(yaml.safe_dump(tasks))
    return folder / "roles"


def put_together(hosts: LinuxHosts) -> dict[str, int]:
    """Modules as Ansible sends them: name → which file."""
    return {
        path.name: path.stat().st_ino
        for path in (hosts._home() / "modules").iterdir()
        if path.suffix != ".lock"
    }


def test_openssh_logs_in_under_the_pinned_key_and_what_it_asks_beyond_the_known_is_refused(
    sandbox: Running,
) -> None:
    home = ssh(sandbox, "ubuntu", "/bin/sh -c 'echo ~ubuntu && sleep 0'")
    assert (home.stdout, home.returncode) == ("/home/ubuntu\n", 0)
    refused = ssh(sandbox, "ubuntu", "rm -rf /etc")
    assert refused.returncode == 127
    assert "the sandbox's machines don't do this: rm -rf /etc" in refused.stdout
    assert ssh(sandbox, "nobody", "true").returncode == 255
    (sandbox.files / "ssh/empty").write_text("")
    assert "Host key verification failed" in ssh(sandbox, "ubuntu", "true", known="ssh/empty").stderr


@pytest.mark.thorough
def test_ansible_plays_on_several_one_fails_and_a_second_run_and_check_mode_write_nothing(
    sandbox: Running, tmp_path: Path
) -> None:
    example = roles(tmp_path, TASKS)
    one, two = machine(sandbox, "gpu-01", "10.5.0.1"), machine(sandbox, "cpu-01", "10.5.0.11")
    package = {"package": str(sandbox.files / "flexdirect_1.11_amd64.deb")}
    hosts = LinuxHosts(Transport(route=sandbox.lookup))
    try:
        fails = hosts.play(Play("example", {one: package, two: {**package, "broken": True}}, roles=example))
        assert fails.changed == {"gpu-01": 4, "cpu-01": 4}
        assert fails.failed == {
            "cpu-01": (
                "broken: the sandbox's machines have no module lineinfile; they have stat, copy, file, "
                "command, systemd_service, systemd, user"
            )
        }
        before, written, built = sandbox.world(), sandbox.tally()["written"], put_together(hosts)
        assert {"ansible.modules.copy", "ansible.modules.command"} <= {
            name.partition("-")[0] for name in built
        }
        assert before["linux"]["gpu-01"]["packages"]["flexdirect"]["version"] == "1.11"
        again = hosts.play(Play("example", {one: package, two: package}, roles=example), check=True)
        assert (again.changed, again.failed) == ({"gpu-01": 0, "cpu-01": 0}, {})
        assert (sandbox.world(), sandbox.tally()["written"]) == (before, written)
        assert put_together(hosts) == built, "a run's second play takes the modules of its first"
    finally:
        hosts.close()


@pytest.mark.thorough
def test_two_roles_at_once_on_one_machine_each_record_the_packages_that_they_brought(
    sandbox: Running, tmp_path: Path
) -> None:
    one, hosts = machine(sandbox, "gpu-01", "10.5.0.1"), LinuxHosts(Transport(route=sandbox.lookup))
    brought = {"flexdirect": "flexdirect_1.11_amd64.deb", "kubernetes": "kubernetes_1.27.3_amd64.deb"}

    def install(name: str) -> str:
        variables = {
            "record": f"/var/lib/bfinfra-{name}",
            "form": "deb",
            "install": True,
            "packages": [
                {"source": sandbox.files / brought[name], "dest": f"/var/cache/bfinfra/{brought[name]}"}
            ],
            "package": "",
            "package_sha256": "ab",
            "program": f"/usr/bin/{name}",
            "repository": {},
        }
        hosts.play(Play("packages", {one: variables}, tasks="install")).check()
        return str(sandbox.world()["linux"]["gpu-01"]["files"][f"/var/lib/bfinfra-{name}.packages"])

    try:
        hosts.play(Play("example", {one: {}}, roles=roles(tmp_path, FOLDERS)))
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(install, brought)) == ["flexdirect\n", "kubernetes\n"]
        assert install("flexdirect") == "flexdirect\n"
    finally:
        hosts.close()


def test_what_a_machine_s_files_hold_comes_back_as_data_over_ssh(sandbox: Running, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    values = {
        name: value
        for name, value in corpus.values(canary).items()
        if name not in ("lone surrogate", "byte that is no UTF-8")
    }
    values["another answer"] = "\x1d0\n\x1e1\nforged\x1d0\n"
    for number, value in enumerate(values.values()):
        sandbox.change({"machine": "cpu-01", "path": f"/etc/odd/{number}", "text": value})
    commands = {name: ("cat", "--", f"/etc/odd/{number}") for number, name in enumerate(values)}
    hosts = LinuxHosts(Transport(route=sandbox.lookup))
    try:
        (found,) = hosts.read({machine(sandbox, "cpu-01", "10.5.0.11"): commands}).values()
    finally:
        hosts.close()
    assert isinstance(found, dict), found
    assert {name: answer.text for name, answer in found.items()} == values
    assert corpus.ran(canary) == []
