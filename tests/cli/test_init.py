"""init and import, as they are typed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from kinds.lifecycle import SPECS

from bfinfra import worlds
from bfinfra.cli import main
from bfinfra.sandbox import SMALL_WORLD, Running, stop

pytestmark = pytest.mark.thorough

PAGE = SPECS.parent / "docs/how-to/write-a-site-from-your-vcenter.md"
WORLD = ("--sandbox", "--world", str(SMALL_WORLD))
FROM = ("--from", "vc.small.test", "--user", "admin@small.test", "--sandbox", str(SMALL_WORLD))
SITE = """\
# ours
site: mine   # its name
vcenter:
    server: vc.small.test
    username: admin@small.test
    password: {env: VCENTER_PASSWORD}
    trust: {ca_file: ca.pem}

vm_class:   # classes
    mine:
        cpus: 2   # two
        memory: 4GiB

# pools
resource_pool: {}
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The command line in a folder of the test's own, on the test's sandbox."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("NO_COLOR", "1")
    state = worlds.state(SMALL_WORLD)
    state.parent.mkdir(parents=True)
    state.symlink_to(sandbox.state)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def command(*words: str) -> Ended:
        return Ended(main([*words]), *capsys.readouterr())

    return command


def test_a_commented_site_is_written_with_its_schema_and_never_over_another(run) -> None:
    made = run("init", "new")
    assert made.code == 0, made
    assert Path("new/site.yaml").read_text().startswith("# yaml-language-server: $schema=site.schema.json\n")
    assert run("validate", "new/site.yaml").code == 0
    before = Path("new/site.yaml").read_text()
    again = run("init", "new")
    assert again.code == 1
    assert "new/site.yaml exists already" in again.err
    assert Path("new/site.yaml").read_text() == before


def test_the_examples_in_the_comments_are_a_site(run) -> None:
    run("init", "new")
    text = Path("new/site.yaml").read_text()
    shown = re.sub(r"^# (?=\s|[a-z_]+:$)", "", text, flags=re.MULTILINE)
    assert yaml.safe_load(shown)["gpu_host"]
    Path("new/site.yaml").write_text(shown)
    found = run("validate", "new/site.yaml")
    assert found.code == 0, found


def test_every_command_of_the_page_runs(run) -> None:
    commands = re.findall(r"^ {4,}bfinfra (.+)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 7
    for command in commands:
        words = command.split()
        if words[0] == "trust":
            words = ["trust", "--world", str(SMALL_WORLD), "vc.small.test"]
        elif "--from" in words:
            words = [
                "init",
                words[1],
                *FROM,
                "--trust",
                "ca.pem",
                "--kind",
                "resource_pool",
                "--kind",
                "gpu_host",
            ]
        elif words[0] != "init":
            words = [words[0], *(("--yes",) if words[0] == "adopt" else ()), *WORLD, *words[1:]]
        found = run(*words)
        assert found.code == (1 if words[0] == "trust" else 0), (words, found)


def test_nothing_is_written_to_the_vcenter(run, sandbox: Running) -> None:
    sandbox.clear_tally()
    assert run("init", "new", *FROM, "--trust", "ca.pem").code == 0
    assert sandbox.tally()["written"] == 0


def test_a_certificate_that_is_not_trusted_says_how_to_trust_it(run) -> None:
    found = run("init", "new", *FROM)
    assert found.code == 1
    assert "bfinfra trust vc.small.test shows it: compare, then add --trust with its SHA-256" in found.err
    assert not Path("new").exists()


def test_a_wrong_password_is_reported_and_never_shown(run) -> None:
    Path("password").write_text("not-the-one-1!")
    found = run("init", "new", *FROM, "--trust", "ca.pem", "--password", "file:password")
    assert found.code == 1
    assert "not-the-one-1!" not in found.out + found.err
    assert "vCenter refused the login of admin@small.test" in found.err
    assert "check --user, and the password" in found.err
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--password", "VMware1!"), "--password takes a reference, never the password itself"),
        (("--trust", "ca.pem", "--kind", "gpu_hosts"), "there is no kind gpu_hosts"),
        (("--trust", "ca.pem", "--kind", "workload"), "a workload can't be described"),
        (("--trust", "ca.pem", "--kind", "bitfusion_server"), "nothing was found on vc.small.test"),
        (("--trust", "AA:BB"), "--trust AA:BB is neither a file nor a SHA-256"),
        (("--trust", "ca.pem", "--datacenter", "nope"), "there is no datacenter nope\n  why: there are: dc"),
        (("--trust", "ca.pem", "--from", ""), "--from names no vCenter"),
        (("--trust", "ca.pem", "--from", "https:///sdk"), "--from names no vCenter"),
    ],
)
def test_what_can_not_be_is_reported_and_nothing_written(run, words, says) -> None:
    found = run("init", "new", *FROM, *words)
    assert found.code == 1, found
    assert says in found.err
    assert not Path("new").exists()


def test_an_import_adds_a_block_and_keeps_every_other_byte(run) -> None:
    Path("site.yaml").write_text(SITE)
    assert run("import", *WORLD, "site.yaml", "vm_class/guaranteed-small").code == 0
    block = "    guaranteed-small:\n      cpus: 2\n      memory: 4GiB\n"
    block += "      cpu_reservation: 100\n      memory_reservation: 100\n"
    at = SITE.index("\n# pools")
    assert Path("site.yaml").read_text() == SITE[:at] + block + SITE[at:]
    again = run("import", *WORLD, "site.yaml", "vm_class/guaranteed-small")
    assert again.code == 1
    assert "the site describes vm_class/guaranteed-small already" in again.err


def test_a_kind_of_its_own_goes_to_the_end_of_the_file(run) -> None:
    Path("site.yaml").write_text(SITE)
    assert run("import", *WORLD, "site.yaml", "gpu_host/esx1.small.test").code == 0
    assert Path("site.yaml").read_text() == SITE + "gpu_host:\n  esx1.small.test:\n    cluster: farm\n"


def test_a_new_site_and_its_world_are_tried_on_the_sandbox_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path / "first")
    try:
        assert main(["init"]) == 0
        site = Path("site.yaml")
        site.write_text(site.read_text() + "\nvm_class: {small: {cpus: 2, memory: 4GiB}}\n")
        assert main(["init", "--world", "site.yaml"]) == 0
        assert main(["plan", "--sandbox"]) == 0, capsys.readouterr()
        assert "1 to create" in capsys.readouterr().out
    finally:
        stop(worlds.state(Path("worlds/site.yaml")))
