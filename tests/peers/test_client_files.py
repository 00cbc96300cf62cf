"""A Bitfusion client on a real machine, its files read from another one over a real SSH server, put there by
real Ansible.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, endings
from peers.machines import Real, hosts_of, own, running

import bfinfra
from bfinfra.backends.bitfusion import read_token
from bfinfra.engine.apply import Options
from bfinfra.sandbox.factories.deb import make_deb
from bfinfra.sandbox.factories.token import make_token

pytestmark = pytest.mark.packages

PLACES = {
    "ca.crt": "/etc/bitfusion/tls/ca.crt",
    "servers.conf": "/etc/bitfusion/servers.conf",
    "client.yaml": "/root/.bitfusion/client.yaml",
}
PROGRAM = (
    '#!/bin/sh\n[ "$1" = list_gpus ] && [ -r "$HOME/.bitfusion/client.yaml" ] && grep -q 10.0.0.9 '
    '/etc/bitfusion/servers.conf && echo "server 10.0.0.9: 1 GPU"\n'
)


@pytest.fixture
def real(tmp_path: Path):
    with running(tmp_path / "machines", "enabled", "desk") as found:
        yield found


def enable(machine: Real, folder: Path, name: str) -> dict[str, str]:
    """As the plug-in would: the files of a client."""
    make_token(folder / f"{name}.tar", name=name, servers=["10.0.0.9:56001"])
    files = read_token(folder / f"{name}.tar").files
    for file, place in PLACES.items():
        machine.write(place, files[file])
    return files


def test_the_files_of_an_enabled_machine_come_over_ssh_follow_it_and_go(
    real: list[Real], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    enabled, desk = real
    make_deb(
        tmp_path / "client_3.0.0_all.deb",
        package="bitfusion-client",
        version="3.0.0",
        architecture="all",
        programs={"bitfusion": PROGRAM},
    )
    hosts = hosts_of(real)
    client = {
        "hosts": ["desk"],
        "package": "client_3.0.0_all.deb",
        "client_files": {"host": "enabled"},
        "group": "",
    }
    path = tmp_path / "site.yaml"
    path.write_text(
        yaml.safe_dump({"site": "real", "linux_host": hosts, "bitfusion_client": {"desk": client}})
    )

    def apply(**how: bool) -> str:
        return endings(
            bfinfra.apply(
                bfinfra.load(path), approve=lambda _: EVERYTHING, options=Options(deadline=600), **how
            )
        )["bitfusion_client/desk"]

    assert any(
        "enabled has no /etc/bitfusion/tls/ca.crt" in str(problem)
        for problem in bfinfra.plan(bfinfra.load(path)).problems
    )
    before, files = own(desk), enable(enabled, tmp_path, "one")
    given = own(enabled)
    assert apply() == "done"
    assert {file: desk.read(place) for file, place in PLACES.items()} == files
    assert desk.run("stat", "-c", "%a %U", PLACES["client.yaml"]).strip() == "600 root"
    assert desk.run("dpkg-query", "-W", "-f", "${Version}", "bitfusion-client") == "3.0.0"
    journal = "".join(each.read_text() for each in (tmp_path / "state").rglob("*") if each.is_file())
    assert journal and not [
        line for line in files["client.yaml"].splitlines() if len(line) > 30 and line in journal
    ]
    assert bfinfra.plan(bfinfra.load(path)).pending == ()
    again = enable(enabled, tmp_path, "two")
    assert again["client.yaml"] != files["client.yaml"]
    (moved,) = bfinfra.plan(bfinfra.load(path)).pending
    assert "on.desk.files./root/.bitfusion/client.yaml" in {change.field for change in moved.changes}
    assert apply() == "done"
    assert desk.read(PLACES["client.yaml"]) == again["client.yaml"]
    assert apply(destroy=True) == "done"
    assert own(desk) == before
    assert own(enabled).keys() == given.keys(), "the machine that gives them keeps them, and gets nothing"
