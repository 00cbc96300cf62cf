"""The unit of a watch under a real systemd: it is ready after its first survey, is started again when it
hangs, and its end with drift is no failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from peers.machines import Real, running

from bfinfra.cli.main import main
from bfinfra.sandbox import SMALL_WORLD

pytestmark = pytest.mark.packages
UNIT = "bfinfra-watch-example.service"
SITE = """\
site: example
vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
supervisor_namespace: {team-a: {cluster: compute, limits: {memory: 2GiB}}}
"""
QUICK = """\
[Service]
WatchdogSec=4
RestartSec=1
EnvironmentFile=
Environment=XDG_STATE_HOME=%S/bfinfra-watch-example
ExecStopPost=/bin/sh -c 'echo "$SERVICE_RESULT $EXIT_CODE $EXIT_STATUS" >> %S/bfinfra-watch-example/ends'
ExecStart=
"""


def shown(machine: Real, *names: str) -> list[str]:
    """Properties of the unit, in this order."""
    lines = machine.run("systemctl", "show", UNIT, *(f"--property={name}" for name in names)).splitlines()
    found = dict(line.partition("=")[::2] for line in lines)
    return [found[name] for name in names]


def until(holds: Callable[[], bool], machine: Real) -> None:
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit, machine.run("systemctl", "status", UNIT)
        time.sleep(0.1)


def test_systemd_knows_how_a_watch_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "ca.pem").write_text("")
    assert main(["schedule", "systemd", "site.yaml", "--watch", "--user", "root", "--out", "."]) == 0
    text = (tmp_path / UNIT).read_text().replace(str(tmp_path), "/srv/example")
    command = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    with running(tmp_path / "machines", "keeper") as (machine,):
        machine.write(f"/etc/systemd/system/{UNIT}", text)
        machine.write(
            f"/etc/systemd/system/{UNIT}.d/test.conf", f"{QUICK}{command} --world /srv/example/world.yaml\n"
        )
        for name in ("site.yaml", "ca.pem"):
            machine.write(f"/srv/example/{name}", (tmp_path / name).read_text())
        machine.write("/srv/example/world.yaml", SMALL_WORLD.read_text())
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "start", UNIT)  # returns once it is ready
        assert shown(machine, "SubState", "StatusText", "NRestarts") == ["running", "1 drifted", "0"]
        time.sleep(6)  # more than the watchdog allows: it gives signs of life
        assert shown(machine, "SubState", "NRestarts") == ["running", "0"]
        machine.run("systemctl", "kill", "--signal=STOP", UNIT)
        until(lambda: shown(machine, "NRestarts", "SubState") == ["1", "running"], machine)
        machine.run("systemctl", "stop", UNIT)
        assert shown(machine, "ActiveState") == ["inactive"]  # not failed
        ends = machine.read("/var/lib/bfinfra-watch-example/ends").splitlines()
        assert (ends[0].split()[0], ends[1:]) == ("watchdog", ["success exited 2"])
