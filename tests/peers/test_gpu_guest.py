"""What a guest with a GPU needs, on a real machine: the container toolkit from packages and from a
repository, gridd.conf, services that restart only on change, all given back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, endings
from peers.machines import WANTS, Real, own, running

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.sandbox.factories.deb import make_deb

pytestmark = pytest.mark.packages
OTHERS = (WANTS, "var/lib/docker", "var/lib/nvidia-gridd", "var/lib/containerd", "var/cache/swcatalog")

UNIT = "[Service]\nExecStart=/bin/sh -c 'echo started >> /var/lib/{0}.starts; exec sleep 100000'\n"
SMI = (
    "#!/bin/sh\ngrep -q ^ServerAddress=10 /etc/nvidia/gridd.conf && echo '    License Status : Licensed' || "
    "echo '    License Status : Unlicensed (Restricted)'\n"
)
DOCKER = '#!/bin/sh\n[ "$1" = ps ] && cat /var/lib/docker.containers 2>/dev/null; true\n'
CANARY = Path(tempfile.gettempdir(), f"bfinfra-canary-{os.getpid()}")
LOOKUP = f"""{{{{ lookup("pipe", "touch {CANARY}") }}}} {{{{ bfinfra_sudo }}}} {{# {{% $HOME"""
TEMPLATE = f"# {LOOKUP}\nFeatureType=0\n"
OURS = {"data-root": "/srv/docker", "log-opts": {"tag": "{{.ImageName}}/{{.Name}}", "labels": LOOKUP}}


@contextlib.contextmanager
def guest(folder: Path) -> Iterator[Real]:
    """A machine with stand-ins for docker, containerd, the guest driver and its tool."""
    with running(folder / "machines", "worker-01") as (found,):
        for name in ("docker", "nvidia-gridd", "containerd"):
            found.write(f"/etc/systemd/system/{name}.service", UNIT.format(name))
        for path, text in (("/usr/bin/nvidia-smi", SMI), ("/usr/local/bin/docker", DOCKER)):
            found.write(path, text)
            found.run("chmod", "755", path)
        found.write("/etc/nvidia/gridd.conf", TEMPLATE)
        found.write("/etc/docker/daemon.json", json.dumps(OURS))
        found.run("rm", "-f", "/etc/apt/apt.conf.d/20packagekit")  # apt would wait for PackageKit
        found.run("systemctl", "daemon-reload")
        found.run("systemctl", "start", "docker", "nvidia-gridd")
        yield found


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Real]:
    with guest(tmp_path) as found:
        yield found


def written(path: Path, real: Real, **toolkit: Any) -> Path:
    machine = {"address": real.address, "key": {"file": str(real.private)}, "trust": {"sha256": real.sha256}}
    site = {
        "site": "real",
        "linux_host": {real.name: machine},
        "nvidia_container_toolkit": {"workers": {"hosts": [real.name], **toolkit}},
        "vgpu_license": {"workers": {"hosts": [real.name], "server": "10.1.1.1"}},
    }
    path.write_text(yaml.safe_dump(site))
    return path


def apply(path: Path, *, allow: Allow = EVERYTHING, **how: Any) -> dict[str, str]:
    found = endings(
        bfinfra.apply(bfinfra.load(path), approve=lambda _: allow, options=Options(deadline=600), **how)
    )
    return {name: ended for name, ended in found.items() if not name.startswith("linux_host/")}


def contents(machine: Real) -> dict[str, str]:
    """Without what moves by itself, and without times of writing."""
    return {name: state.rpartition(" ")[2] for name, state in own(machine, *OTHERS).items()}


def starts(machine: Real, name: str) -> int:
    return machine.read(f"/var/lib/{name}.starts").count("started")


def test_toolkit_and_license_come_stay_and_go(
    real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    make_deb(
        tmp_path / "base_1_all.deb", package="nvidia-container-toolkit-base", version="1", architecture="all"
    )
    make_deb(
        tmp_path / "toolkit_1_all.deb",
        package="nvidia-container-toolkit",
        version="1",
        architecture="all",
        programs={"nvidia-container-runtime": "#!/bin/sh\n"},
    )
    site, before = (
        written(tmp_path / "site.yaml", real, packages=["toolkit_1_all.deb", "base_1_all.deb"]),
        contents(real),
    )
    both = ("nvidia_container_toolkit/workers", "vgpu_license/workers")
    real.write("/var/lib/docker.containers", "4f2a\n")
    with pytest.raises(Exception, match="disrupt"):
        apply(site, allow=Allow())
    assert contents(real) == before
    assert apply(site) == dict.fromkeys(both, "done")
    assert json.loads(real.read("/etc/docker/daemon.json")) == {
        **OURS,
        "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}},
        "default-runtime": "nvidia",
    }
    assert real.read("/etc/nvidia/gridd.conf").splitlines() == [
        f"# {LOOKUP}",
        "FeatureType=4",
        "ServerAddress=10.1.1.1",
        "ServerPort=7070",
    ]
    assert (starts(real, "docker"), starts(real, "nvidia-gridd")) == (2, 2), "each restarted once"
    whole = real.written()
    assert bfinfra.plan(bfinfra.load(site)).pending == ()
    assert apply(site) == dict.fromkeys(both, "kept")
    assert real.written() == whole, "an apply that keeps writes nothing"
    real.write(
        "/etc/nvidia/gridd.conf",
        real.read("/etc/nvidia/gridd.conf").replace("10.1.1.1", "10.9.9.9") + "EnableUI=TRUE\n",
    )
    (moved,) = bfinfra.plan(bfinfra.load(site)).pending
    assert [(change.field, change.now, change.wanted) for change in moved.changes] == [
        ("on.worker-01.values.ServerAddress", "10.9.9.9", "10.1.1.1")
    ]
    assert apply(site)[both[1]] == "done"
    assert (starts(real, "docker"), starts(real, "nvidia-gridd")) == (2, 3)
    assert apply(site, destroy=True) == dict.fromkeys(both, "done")
    assert json.loads(real.read("/etc/docker/daemon.json")) == OURS
    assert real.read("/etc/nvidia/gridd.conf") == TEMPLATE + "EnableUI=TRUE\n"
    assert not CANARY.exists(), "what the machine's files say was run here"
    assert {name for name, state in contents(real).items() if before.get(name) != state} == {
        "etc/docker/daemon.json",
        "etc/nvidia/gridd.conf",
    }, "JSON is laid out anew"
    assert "nvidia-container-toolkit" not in real.run(
        "dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n"
    ).replace("not-installed", "")


@pytest.mark.thorough
def test_from_a_repository_with_what_it_needs_for_containerd(
    real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    make_deb(
        tmp_path / "toolkit.deb",
        package="nvidia-container-toolkit",
        version="1.14.6-1",
        architecture="all",
        programs={"nvidia-container-runtime": "#!/bin/sh\n"},
    )
    data = (tmp_path / "toolkit.deb").read_bytes()
    real.run("mkdir", "-p", "/srv/mirror")
    (Path(f"/proc/{real.pid}/root{real.folder}/r/srv/mirror/toolkit.deb")).write_bytes(data)
    real.write(
        "/srv/mirror/Packages",
        "Package: nvidia-container-toolkit\nVersion: 1.14.6-1\nArchitecture: all\nMaintainer: m "
        f"<m@test>\nFilename: ./toolkit.deb\nSize: {len(data)}\n"
        f"SHA256: {hashlib.sha256(data).hexdigest()}\nDescription: stand-in\n",
    )
    (tmp_path / "nvidia.list").write_text("deb [trusted=yes] file:/srv/mirror ./\n")
    (tmp_path / "nvidia.gpg").write_text("a key\n")
    config = "# by hand\nversion = 2\nroot = '/data'\n"
    real.write("/etc/containerd/config.toml", config)
    site, before = (
        written(
            tmp_path / "site.yaml",
            real,
            repository={"file": "nvidia.list", "key": "nvidia.gpg", "version": "1.14.6-1"},
            runtime="containerd",
        ),
        contents(real),
    )
    assert set(apply(site).values()) == {"done"}
    assert real.read("/etc/apt/sources.list.d/nvidia.list") == "deb [trusted=yes] file:/srv/mirror ./\n"
    text = real.read("/etc/containerd/config.toml")
    assert text.startswith(config) and 'default_runtime_name = "nvidia"' in text
    assert set(apply(site).values()) == {"kept"}
    assert set(apply(site, destroy=True).values()) == {"done"}
    assert {name for name, state in contents(real).items() if before.get(name) != state} == set()
    assert real.read("/etc/containerd/config.toml") == config
