"""The benchmarks' own command lines: what they take, and what they say where it is wrong or a peer's program
isn't there. What they measure is no test's business.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bfinfra

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).parents[1] / "benchmarks"
PROGRAMS = ("apply", "cut", "drift", "kubernetes", "sites", "startup", "survey", "upload", "watched")


def run(program: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BFINFRA_")}
    return subprocess.run(
        [sys.executable, str(FOLDER / f"{program}.py"), *words],
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_each_is_listed_here() -> None:
    named = {path.stem for path in FOLDER.glob("*.py") if "numbers(__doc__" in path.read_text()}
    assert named == set(PROGRAMS)


@pytest.mark.thorough("drift")
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_no_number_is_refused_with_the_usage(program: str) -> None:
    found = run(program, "many")
    assert found.returncode == 2
    assert f"usage: {program}.py [-h] " in found.stderr
    assert "expected a whole number from 1, found 'many'" in found.stderr


@pytest.mark.thorough("drift")
@pytest.mark.parametrize("program", ["apply", "cut", "drift", "sites", "upload"])
def test_a_peer_that_was_not_built_is_reported_with_the_command_that_builds_it(
    program: str, tmp_path: Path
) -> None:
    found = run(program, "1", PEERS_DIR=str(tmp_path))
    assert found.returncode == 1
    assert found.stderr.startswith(f"there is no {tmp_path}/bin/")
    assert found.stderr.endswith("; build it with: script/peers build\n")


def test_peers_that_are_not_up_are_reported(tmp_path: Path) -> None:
    assert (
        run("kubernetes", "1", PEERS_DIR=str(tmp_path)).stderr
        == "the peers are not up; start them with: script/peers up\n"
    )


def test_the_fleet_that_vcsim_builds_is_what_a_valid_site_says(tmp_path: Path) -> None:
    made = run("fleet", "2", str(tmp_path))
    assert (made.returncode, made.stderr) == (0, "")
    assert [each["IP"] for each in json.loads((tmp_path / "fleet.json").read_text())["Machines"]] == [
        "10.0.0.1",
        "10.0.0.2",
    ]
    assert len(bfinfra.load(tmp_path / "site").resources) == 3


def test_the_site_that_the_apply_makes_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "apply", raising=False)
    importlib.import_module("apply").write(tmp_path / "site", 2, 56001)
    loaded = bfinfra.load(tmp_path / "site")
    servers = [spec for key, spec in loaded.resources.items() if key.kind == "bitfusion_server"]
    assert {spec.networks["Network 1"].address.partition(".")[0] for spec in servers} == {"127"}
    assert {"vcenter_url", "vcenter_guid", "vcenter_thumbprint"}.isdisjoint(servers[0].properties)
