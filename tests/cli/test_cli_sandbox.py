"""The embedded world from the command line, with the real sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bfinfra import sandbox
from bfinfra.cli import main

ROOT = Path(__file__).parents[2]
WORLD = ROOT / "specs/worlds/small.yaml"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path / "state/bfinfra/sandbox"
    for folder in (tmp_path / "state/bfinfra/sandbox").glob("*"):
        sandbox.stop(folder)


def test_it_starts_prints_its_addresses_takes_faults_resets_and_stops(home, tmp_path, capsys):
    assert main(["sandbox", "start", "--world", str(WORLD)]) == 0
    (folder,) = home.iterdir()
    started = capsys.readouterr().out
    assert started.startswith(f"# {folder.name}: process ")
    assert ":443  127.0.0.1:" in started
    password = sandbox.running(folder).env["VCENTER_PASSWORD"]
    assert password not in started
    assert evaluated(started, "GOVC_USERNAME", "GOVC_PASSWORD") == ["admin@small.test", password]

    assert main(["sandbox", "status", "--output", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["sandboxes"]
    assert found["pid"] == sandbox.running(folder).pid
    assert "env" not in found

    assert main(["sandbox", "start", "--world", str(WORLD)]) == 0
    assert f"process {found['pid']}" in capsys.readouterr().out

    rules = tmp_path / "faults.yaml"
    rules.write_text("- {api: vcenter, method: ImportVApp, do: {delay: 2}}\n- {do: {status: 503}}\n")
    assert main(["sandbox", "faults", "--rules", str(rules)]) == 0
    assert capsys.readouterr().err == "2 faults added\n"
    rules.write_text("- {door: vcenter, do: {status: 503}}\n")
    assert main(["sandbox", "faults", "--rules", str(rules)]) == 0
    assert capsys.readouterr().err == "in the faults, door is called api now\n1 fault added\n"
    rules.write_text("- {doing: nothing}")
    assert main(["sandbox", "faults", "--rules", str(rules)]) == 1
    assert "the sandbox refuses the faults\n  why: " in capsys.readouterr().err
    assert main(["sandbox", "faults", "--clear"]) == 0

    assert main(["sandbox", "reset"]) == 0
    assert main(["sandbox", "stop"]) == 0
    assert capsys.readouterr().err.endswith(f"stopped {folder.name}\n")
    assert sandbox.running(folder) is None
    assert main(["sandbox", "faults", "--clear"]) == 1
    assert "is not running" in capsys.readouterr().err


def test_on_a_terminal_one_sentence_says_what_to_do_with_it(home, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["sandbox", "start", "--world", str(WORLD), "--no-color"]) == 0
    (folder,) = home.iterdir()
    assert f'eval "$(bfinfra sandbox status {folder.name})"' in capsys.readouterr().err


def evaluated(lines, *names):
    """What a shell has in these variables when it took the lines in."""
    script = 'eval "$1"; shift; for name; do eval "printf \'%s\\n\' \\"\\$$name\\""; done'
    done = subprocess.run(
        ["/bin/sh", "-ec", script, "sh", lines, *names], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_without_any_sandbox(home, capsys):
    assert main(["sandbox", "status"]) == 0
    assert capsys.readouterr() == ("", "no sandbox is running\n")  # a shell evaluates what is on stdout
    assert main(["sandbox", "status", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["sandboxes"] == []
    assert main(["sandbox", "stop"]) == 0
    assert capsys.readouterr().err == "no sandbox is running\n"
    assert main(["sandbox", "reset"]) == 1
    assert "there is no sandbox" in capsys.readouterr().err
    assert main(["sandbox", "start"]) == 1
    assert "which sandbox?" in capsys.readouterr().err


def test_several_sandboxes_are_distinguished(home, capsys):
    for name in ("a-1", "b-2"):
        (home / name).mkdir(parents=True)
    assert main(["sandbox", "reset"]) == 1
    assert "which sandbox?\n  why: a-1, b-2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [("[", "it is not YAML: line 2"), ("[]", "expected faults"), ("words", "expected faults")],
)
def test_faults_that_are_none(text, says, home, tmp_path, capsys, monkeypatch):
    (home / "a-1").mkdir(parents=True)
    monkeypatch.setattr(sandbox, "running", lambda state: object())
    rules = tmp_path / "faults.yaml"
    rules.write_text(text)
    assert main(["sandbox", "faults", "--rules", str(rules)]) == 1
    assert says in capsys.readouterr().err


def test_faults_want_one_of_two_options(home, capsys):
    for options in ([], ["--clear", "--rules", "f"]):
        assert main(["sandbox", "faults", *options]) == 1
        assert "give either --rules FILE or --clear" in capsys.readouterr().err


def test_a_world_that_does_not_start_is_a_problem(home, tmp_path, capsys):
    world = tmp_path / "w.yaml"
    world.write_text("nonsense: [")
    assert main(["sandbox", "start", "--world", str(world)]) == 1
    err = capsys.readouterr().err
    assert "doesn't start" in err
    assert "this should not happen" not in err


def test_a_misspelt_site_is_reported_as_such_and_not_by_its_world(home, tmp_path, capsys):
    (tmp_path / "site.yaml").write_text("site: a\n")
    assert main(["apply", str(tmp_path / "sit.yaml"), "--sandbox", "--yes"]) == 1
    output = capsys.readouterr().err
    assert output == f"error: there is no file {tmp_path}/sit.yaml\n  next: did you mean site.yaml?\n"
    assert not home.exists()


def test_a_world_that_was_changed_since_the_start_is_named_until_it_begins_anew(
    home, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "journal"))
    world, plan = Path("world.yaml"), ["plan", "--world", "world.yaml", "site.yaml"]
    world.write_text(WORLD.read_text())
    Path("site.yaml").write_text((ROOT / "specs/kinds/vm_class.yaml").read_text())
    assert main(plan) == 0
    assert "was changed" not in capsys.readouterr().err
    classes = "vm_classes:\n  gpu-small: {cpus: 2, memory: 4GiB}\n"
    world.write_text(WORLD.read_text().replace("vm_classes:\n", classes))
    later = time.time() + 60
    os.utime(world, (later, later))
    assert main(plan) == 0
    note = capsys.readouterr().err
    assert note.startswith(
        "world.yaml was changed since its sandbox started; to begin with the changed one: "
    )
    for command in note.strip().partition("one: ")[2].split(" && "):
        assert main(command.split()[1:]) == 0
    os.utime(world)
    assert main(plan) == 1
    found = capsys.readouterr()
    assert "vm_class/gpu-small: it exists already" in found.err + found.out
    assert "was changed" not in found.err
