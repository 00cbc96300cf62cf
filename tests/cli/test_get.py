"""get and state, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from bfinfra import worlds
from bfinfra.cli import main
from bfinfra.sandbox import SMALL_WORLD, Running

SITE = """\
site: example
vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
vm_class:
  big: {cpus: 2, memory: 4GiB}
  small: {cpus: 1, memory: 4GiB}
resource_pool:
  gpu: {cluster: farm}
"""
SMALLER = SITE.replace("  small: {cpus: 1, memory: 4GiB}\n", "").replace("cpus: 2", "cpus: 3")


@pytest.fixture
def run(
    tmp_path: Path, sandbox: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A command in the folder of a site of which the classes exist; its code and what it printed."""
    monkeypatch.setattr(worlds, "embedded", lambda *_, **__: sandbox)
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(SITE)

    def command(*words: str) -> tuple[int, str, str]:
        code = main([*words, "--world", str(SMALL_WORLD)])
        return (code, *capsys.readouterr())

    assert command("apply", "--yes", "--target", "vm_class/big", "--target", "vm_class/small")[0] == 0
    Path("site.yaml").write_text(SMALLER)
    return command


def test_get_lists_the_sites_resources_and_their_status(run) -> None:
    code, out, _ = run("get")
    assert code == 0
    assert [line.split("  ")[0].strip() for line in out.splitlines()] == [
        "RESOURCE", "vm_class/big", "resource_pool/gpu", "vm_class/small",
    ]  # fmt: skip
    assert [line.partition("  ")[2].strip() for line in out.splitlines()[1:]] == [
        "differs", "missing", "not in the file",
    ]  # fmt: skip


def test_get_takes_kinds_addresses_and_forms(run) -> None:
    assert run("get", "resource_pool", "-o", "name") == (0, "resource_pool/gpu\n", "")
    found = yaml.safe_load(run("get", "vm_class/big", "site.yaml", "-o", "yaml")[1])["resources"]
    assert [(each["address"], each["status"], each["state"]["settings"]["cpus"]) for each in found] == [
        ("vm_class/big", "differs", 2)
    ]
    assert json.loads(run("get", "vm_class", "-o", "json")[1])["resources"][0] == found[0]
    assert run("get", "all", "-o", "name") == run("get", "-o", "name")


def test_what_there_is_not_is_an_error_with_the_nearest(run) -> None:
    code, _, error = run("get", "vm_clas")
    assert (code, "did you mean vm_class?" in error) == (1, True)
    code, _, error = run("get", "vm_class/bigg")
    assert (code, "there is no vm_class/bigg" in error, "did you mean vm_class/big?" in error) == (
        1,
        True,
        True,
    )


def test_state_list_and_show_ask_the_servers(run) -> None:
    assert run("state", "list") == (0, "vm_class/big\nvm_class/small\n", "")
    code, out, _ = run("state", "show", "vm_class/small")
    assert (code, yaml.safe_load(out)["resources"][0]["status"]) == (0, "not in the file")


def test_what_can_not_be_read_is_reported_and_ends_with_1(run, sandbox: Running) -> None:
    sandbox.faults({"api": "rest", "method": "GET *virtual-machine-classes*", "do": {"status": 403}})
    code, out, _ = run("get")
    assert (code, "vm_class/big       can't be read" in out) == (1, True)
    code, out, error = run("state", "list")
    assert (code, out, "vm_class/big can't be read" in error) == (1, "", True)
