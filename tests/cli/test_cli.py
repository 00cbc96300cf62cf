"""The command line, in process: arguments in, one call of app, output and exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import bfinfra
from bfinfra import sandbox
from bfinfra.cli import signals
from bfinfra.cli.main import UNUSED, main
from bfinfra.engine import checks
from bfinfra.engine.journal import Journal
from bfinfra.model.compare import Change
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import Denied, Problem
from bfinfra.model.events import Ended, Ending, StepEnded
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Step
from bfinfra.sandbox.factories.ova import make_ova

SPACE = Key("supervisor_namespace", "cnasg")
SITE = """\
site: poc
vcenter: {server: vcsa.aiml.local, username: me, password: {env: VCENTER_PASSWORD}}
supervisor_namespace:
  cnasg: {cluster: compute, limits: {memory: 384GiB}}
"""


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create namespace {name}"""

    name: str


CHANGED = Plan(
    "poc",
    (
        Item(
            SPACE,
            Action.CREATE,
            (Create(name="cnasg", changes=(Change("limits.memory", None, 384 * 2**30),)),),
        ),
    ),
)
AGREED = Plan("poc", (Item(SPACE, Action.KEEP),))
BLIND = Plan("poc", (), unreadable={"supervisor_namespace": "no answer"})
BROKEN = Plan("poc", (), problems=(Problem("the policy bf is not there", str(SPACE)),))


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setenv("VCENTER_PASSWORD", "hunter2")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    file = tmp_path / "site.yaml"
    file.write_text(SITE)
    return file


@pytest.fixture
def planned(monkeypatch):
    """Let bfinfra.plan answer this plan; what it was asked is kept."""
    asked = {}

    def answer(plan):
        def fake(site, **how):
            asked.update(site=site, **how)
            return plan

        monkeypatch.setattr("bfinfra.app.plan.plan", fake)
        return asked

    return answer


def test_no_arguments_say_how_it_is_used_and_end_with_1(capsys):
    assert main([]) == 1
    assert capsys.readouterr().err.startswith("usage: bfinfra")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["aply"], "argument COMMAND: there is no 'aply'; did you mean apply?; see bfinfra --help"),
        (["xyz"], "argument COMMAND: there is no 'xyz'; there are: adopt, apply, "),
        (
            ["plan", "--output", "jsn", "site.yaml"],
            "bfinfra plan: error: argument -o/--output: there is no 'jsn'; did you mean json?",
        ),
        (
            ["apply", "site.yaml", "--sandbx"],
            "bfinfra apply: error: there is no '--sandbx'; did you mean --sandbox?; see bfinfra apply --help",
        ),
        (
            ["sandbox", "start", "x.yaml", "--wrld=w.yaml"],
            "bfinfra sandbox start: error: there is no '--wrld=w.yaml'; did you mean --world?; see",
        ),
        (["plan", "x.yaml", "--zzzz"], "bfinfra plan: error: there is no '--zzzz'; see bfinfra plan --help"),
    ],
)
def test_a_word_that_there_is_not_is_answered_with_the_nearest(words, output, capsys):
    assert main(words) == 1
    assert output in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ["apply"],
        ["plan", "--colour", "x.yaml"],
        ["apply", "x", "--parallelism", "0"],
        ["apply", "x", "--deadline", "soon"],
        ["plan", "--output", "xml", "x"],
        ["completion", "tcsh"],
        ["destroy", "--he", "x"],
    ],
)
def test_wrong_arguments_end_with_1_because_2_means_drift(argv, capsys):
    assert main(argv) == 1
    captured = capsys.readouterr()
    assert "error: " in captured.err
    assert captured.out == ""


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bfinfra 0.")


def test_validate_a_good_site(site, capsys):
    assert main(["validate", str(site)]) == 0
    assert capsys.readouterr().out == "poc: 1 resource, no problems.\n"


def test_validate_says_every_problem_like_a_compiler(site, capsys):
    site.write_text(SITE.replace("memory", "memry"))
    assert main(["validate", str(site)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{site}:4:38: error: ")
    assert "    cnasg: {cluster: compute, limits: {memry: 384GiB}}\n" + " " * 39 + "^^^^^\n" in err


def test_validate_answers_programs_on_stdout(site, capsys):
    site.write_text(SITE.replace("memory", "memry"))
    assert main(["--output", "json", "validate", str(site)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["format_version"], found["type"], found["valid"]) == (1, "validation", False)
    assert found["problems"][0]["where"] == {"file": str(site), "line": 4, "column": 38}


def test_validate_warns_of_references_that_lead_nowhere(site, capsys, monkeypatch):
    monkeypatch.delenv("VCENTER_PASSWORD")
    assert main(["validate", str(site)]) == 0
    assert "warning: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("plan", "options", "code"),
    [
        (CHANGED, [], 0),
        (CHANGED, ["--detailed-exitcode"], 2),
        (AGREED, ["--detailed-exitcode"], 0),
        (BLIND, ["--detailed-exitcode"], 1),
        (BROKEN, [], 1),
    ],
)
def test_plan_ends_with(plan, options, code, site, planned):
    planned(plan)
    assert main(["plan", str(site), *options]) == code


MOVED = Drifted(key=SPACE, cause=Cause.DRIFT, field="limits.memory", applied=1, now=2, wanted=1)
REPORT = Report("poc", (MOVED,), 1, existing=(str(SPACE),))


@pytest.fixture
def checked(monkeypatch):
    """Let bfinfra.drift answer this report, held against what was kept of the last one."""

    def answer(report):
        monkeypatch.setattr(
            "bfinfra.app.drift.drift", lambda site, **_: checks.since(report, checks.recall(report.site))
        )

    return answer


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (REPORT, 2),
        (replace(REPORT, found=()), 0),
        (replace(REPORT, found=(replace(MOVED, cause=Cause.UNAPPLIED),)), 0),
        (replace(REPORT, found=(replace(MOVED, ignored="why"),)), 0),
        (replace(REPORT, unreadable={"supervisor_namespace": "no answer"}), 1),
        (replace(REPORT, problems=(Problem("the policy bf is not there", str(SPACE)),)), 1),
    ],
)
def test_drift_ends_with_2_on_drift_and_only_then(report, code, site, checked):
    checked(report)
    assert main(["drift", str(site)]) == code


def test_lasting_drift_is_reported_once_and_so_is_its_end(site, checked, capsys):
    output = []
    for report in (REPORT, REPORT, replace(REPORT, found=()), replace(REPORT, found=())):
        checked(report)
        main(["drift", str(site), "--changes-only"])
        output.append(capsys.readouterr().out)
    assert "limits.memory" in output[0]
    assert output[1] == ""
    assert output[2] == "no longer: supervisor_namespace/cnasg limits.memory drift\n"
    assert output[3] == ""


def test_the_old_name_of_changes_only_still_answers(site, checked, capsys):
    checked(REPORT)
    main(["drift", str(site), "--news"])
    assert "limits.memory" in capsys.readouterr().out
    main(["drift", str(site), "--news"])
    assert capsys.readouterr() == ("", "")


def test_a_blind_check_ends_nothing_and_is_reported_even_where_only_changes_are_asked_for(
    site, checked, capsys
):
    checked(REPORT)
    main(["drift", str(site)])
    checked(replace(REPORT, found=(), unreadable={"supervisor_namespace": "no answer"}))
    capsys.readouterr()
    assert main(["drift", str(site), "--changes-only"]) == 1
    assert "no answer" in capsys.readouterr().out
    checked(REPORT)
    main(["drift", str(site), "--changes-only"])
    assert capsys.readouterr().out == ""


def test_a_check_that_is_to_be_forgotten_keeps_nothing(site, checked, tmp_path, monkeypatch):
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    checked(REPORT)
    main(["drift", str(site), "--forget"])
    assert not (tmp_path / "state").exists()


def test_a_check_that_can_not_keep_what_it_saw_is_a_check_all_the_same(
    site, checked, tmp_path, monkeypatch, capsys
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "file"))
    checked(REPORT)
    assert main(["drift", str(site)]) == 2
    assert "can't be kept for the next check" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "SITE", "--out", "nowhere/plan"],
        ["plan", "SITE", "--html", "nowhere/page.html"],
        ["apply", "SITE", "--yes", "--html", "nowhere/page.html"],
        ["show", "PLAN", "--html", "nowhere/page.html"],
        ["drift", "SITE", "--junit", "nowhere/junit.xml"],
        ["drift", "SITE", "--html", "nowhere/page.html"],
        ["kubeconfig", "SITE", "tanzu_cluster/a", "--out", "nowhere/kubeconfig"],
        ["schedule", "systemd", "SITE", "--out", "nowhere"],
        ["schema", "--out", "nowhere/schema.json"],
    ],
)
def test_a_missing_folder_is_reported_before_anything_is_read(words, site, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("plan", "apply", "drift", "kubeconfig"):
        monkeypatch.setattr(f"bfinfra.app.{name}.{name}", lambda *_, **__: pytest.fail("looked"))
    assert main([str(site) if word == "SITE" else word for word in words]) == 1
    output = capsys.readouterr().err
    assert (
        "error: the file can't be written\n  why: there is no folder nowhere\n  next: mkdir -p nowhere"
        in output
    )


def test_a_folder_in_the_place_of_a_file_is_reported_before_anything_is_read(
    site, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("bfinfra.app.plan.plan", lambda *_, **__: pytest.fail("looked"))
    assert main(["plan", str(site), "--out", str(tmp_path)]) == 1
    output = capsys.readouterr().err
    assert (
        f"{tmp_path}: error: the file can't be written\n  why: it is a folder\n  next: name a file in it"
        in output
    )


def test_a_junit_report_is_written_beside(site, checked, tmp_path, capsys):
    checked(REPORT)
    main(["drift", str(site), "--junit", str(tmp_path / "junit.xml")])
    assert 'failures="1"' in (tmp_path / "junit.xml").read_text()
    assert main(["drift", str(site), "--junit", str(tmp_path / "no/junit.xml")]) == 1
    assert "can't be written" in capsys.readouterr().err


def test_plan_shows_sizes_in_the_units_of_the_kind(site, planned, capsys):
    planned(CHANGED)
    main(["plan", str(site)])
    assert "limits.memory: 384GiB" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["--output", "json", "plan"], ["plan", "--output", "json"]])
def test_options_come_before_or_after_the_command(argv, site, planned, capsys):
    planned(CHANGED)
    main([*argv, str(site)])
    found = json.loads(capsys.readouterr().out)
    assert found["items"][0]["changes"] == [{"field": "limits.memory", "now": None, "wanted": 412316860416}]


def test_markdown_and_jsonl(site, planned, capsys):
    planned(CHANGED)
    main(["plan", "--output", "markdown", str(site)])
    assert capsys.readouterr().out.startswith("### bfinfra plan: poc\n")
    main(["plan", "--output", "jsonl", str(site)])
    assert [json.loads(line)["type"] for line in capsys.readouterr().out.splitlines()] == ["item", "plan"]


def test_plan_of_a_destruction(site, planned):
    asked = planned(AGREED)
    main(["plan", "--destroy", str(site)])
    assert asked["destroy"] is True
    assert asked["site"].name == "poc"


def test_a_saved_plan_is_readable_by_its_owner_only(site, planned, tmp_path):
    planned(CHANGED)
    main(["plan", str(site), "--out", str(tmp_path / "p.json")])
    assert stat.S_IMODE((tmp_path / "p.json").stat().st_mode) == 0o600
    assert json.loads((tmp_path / "p.json").read_text())["plan"]["items"][0]["address"] == str(SPACE)


def test_a_plan_with_problems_is_not_saved(site, planned, tmp_path):
    planned(BROKEN)
    assert main(["plan", str(site), "--out", str(tmp_path / "p.json")]) == 1
    assert not (tmp_path / "p.json").exists()


def test_colours_only_on_a_terminal_and_not_against_the_users_wish(site, planned, capsys, monkeypatch):
    planned(CHANGED)
    main(["plan", str(site)])
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main(["plan", str(site)])
    assert "\x1b[32m" in capsys.readouterr().out
    main(["plan", "--no-color", str(site)])
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["plan", str(site)])
    assert "\x1b" not in capsys.readouterr().out


def test_history_of_a_site_by_file_or_name(site, capsys):
    journal = Journal("poc")
    journal(StepEnded(at=1.0, key=SPACE, title="create namespace cnasg", number=1, seconds=1.0))
    journal(Ended(at=2.0, key=SPACE, action=Action.CREATE, ending=Ending.DONE, seconds=1.0))
    journal.close()
    for argument in (str(site), "poc"):
        assert main(["history", argument]) == 0
        assert "✓ supervisor_namespace/cnasg: created after 1.0s" in capsys.readouterr().out
    main(["history", "poc", "--output", "json"])
    assert json.loads(capsys.readouterr().out)["runs"][0]["began"] == "1970-01-01T00:00:01.000Z"


def test_graph_as_tree_dot_and_json(site, capsys):
    main(["graph", str(site)])
    assert capsys.readouterr().out == "supervisor_namespace/cnasg\n"
    main(["graph", "--dot", str(site)])
    assert capsys.readouterr().out.startswith('digraph "poc" {')
    main(["graph", "--output", "json", str(site)])
    assert json.loads(capsys.readouterr().out)["resources"] == [
        {"address": str(SPACE), "waits_for": [], "because": {}}
    ]


def test_kinds_and_one_of_them(capsys):
    assert main(["kinds"]) == 0
    assert "supervisor_namespace" in capsys.readouterr().out
    assert main(["kinds", "supervisor_namespace"]) == 0
    assert "limits.memory: size, such as 128GiB" in capsys.readouterr().out
    assert main(["kinds", "supervisor_namespce"]) == 1
    assert "did you mean supervisor_namespace?" in capsys.readouterr().err


def test_the_schema_is_json_and_can_be_written(tmp_path, capsys):
    assert main(["schema"]) == 0
    assert "supervisor_namespace" in json.loads(capsys.readouterr().out)["properties"]
    assert main(["schema", "--out", str(tmp_path / "s.json")]) == 0
    assert json.loads((tmp_path / "s.json").read_text())["$schema"]
    assert "yaml-language-server" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["nothing", "gpu_host/esx1"])
def test_what_is_no_cluster_has_no_kubeconfig(site, capsys, address):
    assert main(["kubeconfig", str(site), address]) == 1
    assert f"{address} is no cluster of this site" in capsys.readouterr().err


def test_a_kubeconfig_is_printed_or_written_for_its_owner_only(site, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "bfinfra.app.kubeconfig.kubeconfig",
        lambda site, address, **_: f"kind: Config # {site.name} {address}\n",
    )
    assert main(["kubeconfig", str(site), "tanzu_cluster/c"]) == 0
    assert capsys.readouterr().out == "kind: Config # poc tanzu_cluster/c\n"
    target = tmp_path / "kc"
    target.write_text("old")
    target.chmod(0o644)
    assert main(["kubeconfig", str(site), "tanzu_cluster/c", "--out", str(target)]) == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.read_text().startswith("kind: Config")


def test_errors_are_problems_on_stderr(site, monkeypatch, capsys):
    def denied(*_, **__):
        raise Denied(
            "no right to look", server="vcsa:443", why="System.Read is missing\x1b[2J", next="ask for it"
        )

    monkeypatch.setattr("bfinfra.app.plan.plan", denied)
    assert main(["plan", str(site)]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "vcsa:443: error: no right to look\n  why: System.Read is missing\\x1b[2J\n  next: ask for it\n",
    )
    assert main(["plan", str(site), "--output", "json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["error"] == "Denied"


def test_what_should_not_happen_is_a_sentence_and_no_traceback(site, monkeypatch, capsys):
    def bug(*_, **__):
        raise TypeError("x is None")

    monkeypatch.setattr("bfinfra.app.plan.plan", bug)
    assert main(["plan", str(site)]) == 1
    assert "this should not happen: TypeError: x is None" in (err := capsys.readouterr().err)
    assert "Traceback" not in err
    monkeypatch.setenv("BFINFRA_TRACEBACK", "1")
    assert main(["plan", str(site)]) == 1
    assert 'raise TypeError("x is None")\nTypeError: x is None\n' in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(site, planned, capsys):
    planned(CHANGED)
    assert main(["plan", str(site), "--out", "/nowhere/p.json"]) == 1
    assert capsys.readouterr().err == (
        "/nowhere/p.json: error: the file can't be written\n  why: there is no folder /nowhere\n"
        "  next: mkdir -p /nowhere\n"
    )
    assert main(["plan", "missing.yaml"]) == 1
    assert "missing.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "code", "output"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_a_signal_while_reading_is_heard_by_no_library(number, code, output, site, monkeypatch, capsys):
    heard = []

    def reading(*_, context, **__):
        os.kill(os.getpid(), number)
        heard.append(context.stop.flag.wait(60))
        context.stop.check()
        heard.append("another request")

    monkeypatch.setattr("bfinfra.app.plan.plan", reading)
    assert main(["plan", str(site)]) == code
    assert heard == [True]
    assert capsys.readouterr().err == output


def test_who_is_interrupted_waits_for_no_server_that_says_nothing(site, monkeypatch, capsys):
    answered = threading.Event()

    def reading(*_, context, **__):
        os.kill(os.getpid(), signal.SIGINT)
        answered.wait(60)
        context.stop.check()

    monkeypatch.setattr("bfinfra.app.plan.plan", reading)
    monkeypatch.setattr(signals, "GRACE", 0.01)
    assert main(["plan", str(site)]) == 130
    assert not answered.is_set()
    answered.set()


def test_the_sandbox_is_found_or_started_with_the_world_beside_the_site(site, planned, monkeypatch, capsys):
    asked = planned(AGREED)
    assert main(["plan", "--sandbox", str(site)]) == 1
    assert "has no world" in capsys.readouterr().err
    world = site.parent / "worlds" / "site.yaml"
    world.parent.mkdir()
    world.write_text("")

    class Running:
        def __init__(self) -> None:
            self.env, self.files, self.lookup = {"VCENTER_PASSWORD": "of the sandbox"}, site.parent, None
            self.ca_file = site.parent / "ca.pem"

    started = []
    monkeypatch.setattr(sandbox, "running", lambda state: None, raising=False)
    monkeypatch.setattr(
        sandbox, "start", lambda file, state: started.append((file, state)) or Running(), raising=False
    )
    assert main(["plan", "--sandbox", str(site)]) == 0
    ((file, state),) = started
    assert file == world
    assert state.parent == Path(site.parent / "state/bfinfra/sandbox")
    assert state.name.startswith("site-")
    assert isinstance(asked["context"].sandbox, Running)
    assert asked["site"].vcenter.password.reveal() == "of the sandbox"


def test_an_ova_is_inspected_and_verified(tmp_path, capsys):
    file = tmp_path / "bf.ova"
    make_ova(file)
    assert main(["ova", "inspect", str(file)]) == 0
    assert "has a manifest; --verify checks it" in capsys.readouterr().out
    assert main(["ova", "inspect", "--verify", "--output", "json", str(file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["type"], found["manifest"]["state"], found["size"]) == (
        "ova",
        "verified",
        file.stat().st_size,
    )
    make_ova(file, broken="wrong digest")
    assert main(["ova", "inspect", "--verify", str(file)]) == 1
    assert "is damaged" in capsys.readouterr().err


def test_nobody_imports_what_the_command_goes_without():
    source = "\n".join(
        path.read_text() for path in Path(bfinfra.__file__).parent.rglob("*.py") if path.name != "main.py"
    )
    for module in UNUSED:
        package, _, inner = module.partition("._typeinfo_")
        name = inner.removesuffix("health") or package
        assert not re.search(rf"import (.*, )?{name}\b|from {name}\b", source), module
