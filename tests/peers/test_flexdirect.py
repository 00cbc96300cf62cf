"""FlexDirect on real machines: a real package installed by dpkg, a scheduler under real systemd, one machine
failing, drift, check mode as a witness, gone without a trace.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, endings
from peers.machines import WANTS, Real, hosts_of, own, running

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.sandbox.factories.deb import make_deb

pytestmark = pytest.mark.packages

LICENSE = "BF-8765-the-license-of-two"
REPORT = (
    "Health report for server: 10.0.0.1:56001\\n[PASS    ] Check flexdirect install\\n[MARGINAL] Check "
    "MTU Size: 10000Mbps interface eth0 MTU 1500 < 4K:\\n"
    "                performance hit\\nPASS: 1\\nMARGINAL: 1\\nFATAL: 0\\nSKIPPED: 0\\n"
)
PROGRAM = f"""#!/bin/sh
case "$1" in
init) mkdir -p /etc/bitfusionio/lic && echo "$5" | grep -q '^BF-' && echo host-1 > /etc/bitfusionio/lic/host_id || {{ echo "license refused: $5" >&2; exit 4; }} ;;
resource_scheduler) exec sleep 100000 ;;
health) printf '{REPORT}' ;;
esac
"""


@pytest.fixture
def real(tmp_path):
    with running(tmp_path / "machines", "gpu-01", "gpu-02") as found:
        yield found


@pytest.fixture
def site(real: list[Real], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEXDIRECT_LICENSE", LICENSE)
    make_deb(
        tmp_path / "flexdirect_1.11_all.deb",
        package="flexdirect",
        version="1.11",
        architecture="all",
        programs={"flexdirect": PROGRAM},
    )
    hosts = hosts_of(real)
    v100 = {
        "hosts": [each.name for each in real],
        "package": "flexdirect_1.11_all.deb",
        "license": {"env": "FLEXDIRECT_LICENSE"},
        "scheduler": {"gpus": 2, "port": 56002},
    }
    (tmp_path / "site.yaml").write_text(
        yaml.safe_dump({"site": "real", "linux_host": hosts, "flexdirect_host": {"v100": v100}})
    )
    return tmp_path / "site.yaml"


def apply(path: Path, **how) -> dict[str, str]:
    return endings(
        bfinfra.apply(bfinfra.load(path), approve=lambda _: EVERYTHING, options=Options(deadline=600), **how)
    )


def test_the_life_of_flexdirect_on_two_real_machines(
    site: Path, real: list[Real], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = real
    before = [own(each, WANTS) for each in real]
    two.run("mv", "/usr/bin/apt-get", "/usr/bin/apt-get.real")
    two.write("/usr/bin/apt-get", "#!/bin/sh\necho 'E: Unable to fetch some archives' >&2; exit 100\n")
    two.run("chmod", "755", "/usr/bin/apt-get")
    ended = apply(site)["flexdirect_host/v100"]
    for part in ("failed on gpu-02", "Unable to fetch some archives", "1 of 2 machines are done"):
        assert part in ended, ended
    assert one.run("systemctl", "is-active", "flexdirect-scheduler.service").strip() == "active"
    two.run("mv", "/usr/bin/apt-get.real", "/usr/bin/apt-get")
    assert apply(site) == {
        "linux_host/gpu-01": "kept",
        "linux_host/gpu-02": "kept",
        "flexdirect_host/v100": "done",
    }
    for each in real:
        assert each.run("dpkg-query", "-W", "-f", "${Version}", "flexdirect") == "1.11"
        assert each.run("systemctl", "is-active", "flexdirect-scheduler.service").strip() == "active"
        assert "resource_scheduler -n 2 -s 56002" in each.run(
            "systemctl", "cat", "flexdirect-scheduler.service"
        )
        assert LICENSE not in "".join(
            each.read(f"/var/lib/bfinfra/{name}") for name in ("flexdirect_host", "flexdirect_host.package")
        )
    written = [each.written() for each in real]
    assert bfinfra.plan(bfinfra.load(site)).pending == ()
    assert set(apply(site).values()) == {"kept"}
    assert [each.written() for each in real] == written, (
        "neither drift nor an apply that keeps writes anything"
    )
    one.run("systemctl", "stop", "flexdirect-scheduler.service")
    (moved,) = bfinfra.plan(bfinfra.load(site)).pending
    assert [(change.field, change.now, change.wanted) for change in moved.changes] == [
        ("on.gpu-01.service", "stopped", "running")
    ]
    assert apply(site)["flexdirect_host/v100"] == "done"
    monkeypatch.setenv("FLEXDIRECT_LICENSE", "wrong-license-of-nobody")
    refused = apply(site)["flexdirect_host/v100"]
    assert refused.startswith("failed") and "wrong-license" not in refused
    monkeypatch.setenv("FLEXDIRECT_LICENSE", LICENSE)
    assert apply(site, destroy=True)["flexdirect_host/v100"] == "done"
    assert own(one, WANTS) == before[0]
    assert [name for name in own(two, WANTS) if name not in before[1]] == ["usr/bin/apt-get"]


INSTALLER = f"""#!/bin/bash
set -e
mkdir -p /opt/flexdirect
cat > /usr/bin/flexdirect <<'PROGRAM'
{PROGRAM}PROGRAM
chmod 755 /usr/bin/flexdirect
printf '#!/bin/sh\\n[ "$1" = --yes ] && rm -r /usr/bin/flexdirect /opt/flexdirect\\n' > /opt/flexdirect/uninstall
chmod 755 /opt/flexdirect/uninstall
"""


@pytest.mark.thorough
def test_what_an_installer_put_on_a_real_machine_is_undone_by_its_command_before_a_package_comes(
    site: Path, real: list[Real]
) -> None:
    machine, given = real[0], yaml.safe_load(site.read_text())
    before = own(machine, WANTS)
    (site.parent / "install.sh").write_text(INSTALLER)
    wanted = given["flexdirect_host"]["v100"]
    package = wanted["package"]

    def applied(**changes: object) -> str:
        wanted.update(changes)
        site.write_text(yaml.safe_dump(given))
        return apply(site)["flexdirect_host/v100"]

    assert applied(hosts=[machine.name], package="install.sh", uninstall=["true"]) == "done"
    assert machine.run("systemctl", "is-active", "flexdirect-scheduler.service").strip() == "active"
    assert (
        "true ran, and /usr/bin/flexdirect is still there"
        in apply(site, destroy=True)["flexdirect_host/v100"]
    )
    assert applied(uninstall=["/opt/flexdirect/uninstall", "--yes"]) == "done"
    assert applied(package=package, uninstall=[]) == "done"
    assert machine.run("dpkg", "-S", "/usr/bin/flexdirect").startswith("flexdirect:")
    assert "opt/flexdirect/uninstall" not in own(machine, WANTS)
    assert machine.run("systemctl", "is-active", "flexdirect-scheduler.service").strip() == "active"
    assert apply(site, destroy=True)["flexdirect_host/v100"] == "done"
    assert own(machine, WANTS) == before
