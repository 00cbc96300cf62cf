"""The roles' .rpm path on a real machine: real packages by rpmbuild, installed and removed by dnf, which Red
Hat's systems call yum as well. The machine is Debian: dnf and rpm are its packages.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, endings
from peers.machines import Real, running
from peers.test_gpu_guest import apply, contents, guest, written

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.sandbox.factories.token import make_token

pytestmark = pytest.mark.packages

SPEC = """Name: {name}
Version: 1
Release: 1
Summary: a stand-in
License: none
BuildArch: noarch
AutoReqProv: no
{needs}
%description
A stand-in.
%install
mkdir -p %{{buildroot}}/usr/bin
printf '#!/bin/sh\\n' > %{{buildroot}}/usr/bin/{program}
%files
%attr(755, root, root) /usr/bin/{program}
"""
PRIMARY = '<metadata xmlns="http://linux.duke.edu/metadata/common" packages="0"/>\n'
REPOMD = """<repomd xmlns="http://linux.duke.edu/metadata/repo"><revision>1</revision>
<data type="primary"><checksum type="sha256">{0}</checksum><open-checksum type="sha256">{0}</open-checksum><location href="repodata/primary.xml"/></data></repomd>
"""
REPO = "[empty]\nname=empty\nbaseurl=file:///srv/empty\nenabled=1\ngpgcheck=0\n"
LEFT = (
    "var/lib/rpm",
    "var/lib/dnf",
    "var/cache/dnf",
    "var/log/dnf",
    "var/log/hawkey",
    "usr/lib/sysimage/rpm",
    "root/.rpmdb",
)
"""What rpm and dnf themselves keep."""


def built(folder: Path, name: str, program: str, needs: str = "") -> Path:
    (folder / f"{name}.spec").write_text(
        SPEC.format(name=name, program=program, needs=f"Requires: {needs}" if needs else "")
    )
    subprocess.run(
        ["rpmbuild", "-bb", "--define", f"_topdir {folder}/rpm", f"{folder}/{name}.spec"],
        check=True,
        capture_output=True,
    )
    return Path(shutil.copy(folder / f"rpm/RPMS/noarch/{name}-1-1.noarch.rpm", folder))


def yum(real: Real) -> None:
    """As on Red Hat's systems, with a repository that holds nothing."""
    real.run("ln", "-s", "/usr/bin/dnf", "/usr/local/bin/yum")
    real.write("/etc/yum.repos.d/empty.repo", REPO)
    real.write("/srv/empty/repodata/primary.xml", PRIMARY)
    real.write("/srv/empty/repodata/repomd.xml", REPOMD.format(hashlib.sha256(PRIMARY.encode()).hexdigest()))


CLIENT = {"hosts": ["worker-01"], "token": "team", "list_gpus": False}
KINDS: dict[str, dict[str, Any]] = {
    "flexdirect": {"flexdirect_host": {"cpu": {"hosts": ["worker-01"], "health": "any"}}},
    "bitfusion": {
        "bitfusion_token": {"team": {"source": {"tar": "token.tar"}}},
        "bitfusion_client": {"desk": CLIENT},
    },
}
"""By the program in the package, what the site has besides the machine."""
SOURCES = ("linux_host/", "bitfusion_token/")


@pytest.mark.parametrize("program", KINDS)
@pytest.mark.thorough("bitfusion")
def test_packages_of_rpm_come_and_go(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    if missing := [name for name in ("rpmbuild", "dnf") if shutil.which(name) is None]:
        pytest.fail(f"no {' and no '.join(missing)} here: apt-get install rpm dnf")
    good = built(tmp_path, program, program)
    make_token(tmp_path / "token.tar")
    with running(tmp_path / "machines", "worker-01") as (real,):
        yum(real)
        machine = {
            "address": real.address,
            "key": {"file": str(real.private)},
            "trust": {"sha256": real.sha256},
        }
        site: dict[str, Any] = {
            "site": "by-rpm",
            "linux_host": {"worker-01": machine},
            **copy.deepcopy(KINDS[program]),
        }
        next(iter(site[next(reversed(site))].values()))["package"] = good.name
        (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
        before = rid(contents(real))

        def ended(**how: Any) -> set[str]:
            found = endings(
                bfinfra.apply(
                    bfinfra.load(tmp_path / "site.yaml"),
                    approve=lambda _: EVERYTHING,
                    options=Options(deadline=600),
                    **how,
                )
            )
            return {text for name, text in found.items() if not name.startswith(SOURCES)}

        assert ended() == {"done"}
        assert real.run("rpm", "-qa").split() == [f"{program}-1-1.noarch"]
        assert ended() == {"kept"}
        assert ended(destroy=True) == {"done"}
        assert real.run("rpm", "-qa") == ""
        assert rid(contents(real)) == before
        built(tmp_path, program, program, needs="nothing-of-the-kind")
        (failed,) = ended()
        assert failed.startswith("failed: ")
        assert "nothing-of-the-kind" in failed


@pytest.mark.thorough
def test_all_packages_of_rpm_that_came_together_go_together_and_what_was_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    theirs, base = (
        built(tmp_path, "theirs", "theirs"),
        built(tmp_path, "nvidia-container-toolkit-base", "nvidia-ctk"),
    )
    toolkit = built(
        tmp_path,
        "nvidia-container-toolkit",
        "nvidia-container-runtime",
        needs="nvidia-container-toolkit-base",
    )
    with guest(tmp_path) as real:
        yum(real)
        real.write("/srv/theirs.rpm.64", base64.b64encode(theirs.read_bytes()).decode())
        real.run("sh", "-c", "base64 -d /srv/theirs.rpm.64 > /srv/theirs.rpm && rpm -i /srv/theirs.rpm")
        site, before = (
            written(tmp_path / "site.yaml", real, packages=[toolkit.name, base.name]),
            rid(contents(real)),
        )
        assert set(apply(site).values()) == {"done"}
        assert sorted(real.run("rpm", "-qa").split()) == [
            "nvidia-container-toolkit-1-1.noarch",
            "nvidia-container-toolkit-base-1-1.noarch",
            "theirs-1-1.noarch",
        ]
        assert set(apply(site).values()) == {"kept"}
        assert set(apply(site, destroy=True).values()) == {"done"}
        assert real.run("rpm", "-qa").split() == ["theirs-1-1.noarch"]
        assert {name for name, state in rid(contents(real)).items() if before.get(name) != state} == {
            "etc/docker/daemon.json"
        }, "JSON is laid out anew"


def rid(found: dict[str, str]) -> dict[str, str]:
    return {name: state for name, state in found.items() if not name.startswith(LEFT)}
