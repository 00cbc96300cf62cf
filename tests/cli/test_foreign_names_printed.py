"""Every command that prints, in every form, on a vCenter whose objects, users and errors have hostile names: each
form's own parser finds no more than the form itself.

Commands are found in the parser: a new one fails here until it has its words, or the reason why it has none.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from bad_input import judges
from bad_input.nasty import acts

from bfinfra import worlds
from bfinfra.cli import main
from bfinfra.cli.parser import build
from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

PIECES = "##vso[a]|`b`<img>@root![l](x)<!--$(id)"
NAME = f"::a::{PIECES}"  # what the name of a resource may have: no blanks, no slash, 60 characters
OBJECT = f"{NAME} https://evil.test\n::set-env name=A::b\u202eforged\u2028::add-path::x"  # XML holds no ESC
SITE = {
    "site": "example",
    "vcenter": {
        "server": "vc.small.test",
        "username": "admin@small.test",
        "password": {"env": "VCENTER_PASSWORD"},
        "trust": {"ca_file": "ca.pem"},
    },
    "resource_pool": {NAME: {"cluster": "farm"}, "b": {"cluster": "farm"}},
    "vm_class": {"big": {"cpus": 2, "memory": "4GiB"}},
    "virtual_machine": {
        f"a{PIECES}": {
            "template": "centos-7.6", "cluster": "farm", "datastore": OBJECT, "cpus": 1, "memory": "1GiB",
            "adapters": [{"network": OBJECT}],
        }
    },
}  # fmt: skip
CHANGED = {**SITE, "resource_pool": {NAME: {"cluster": "farm", "memory": {"limit": "1GiB"}}}}
WRONG = {**CHANGED, "resource_pool": {**CHANGED["resource_pool"], "c": {"cluster": NAME}}}
# what prints a document exactly, such as a manifest with the site in it, is tried with a site that it refuses
COMMANDS: dict[str, tuple[str, ...]] = {
    "validate": ("site.yaml",),
    "fmt": ("--diff", "site.yaml"),
    "render": ("site.yaml",),
    "plan": ("site.yaml",),
    "show": ("saved",),
    "get": ("site.yaml",),
    "state list": ("site.yaml",),
    "state show": (f"resource_pool/{NAME}", "site.yaml"),
    "state forget": (f"resource_pool/{NAME}", "site.yaml"),
    "drift": ("site.yaml",),
    "watch": ("site.yaml", "--once-settled"),
    "trust": ("site.yaml",),
    "history": ("site.yaml",),
    "graph": ("site.yaml",),
    "doctor": ("site.yaml",),
    "health": ("site.yaml",),
    "privileges": ("site.yaml",),
    "kubeconfig": ("site.yaml", f"tanzu_cluster/{NAME}"),
    "apply": ("--yes", "good.yaml"),
    "destroy": ("--yes", "site.yaml"),
    "import": ("site.yaml", f"virtual_machine/{NAME}"),
    "adopt": ("--yes", "site.yaml", f"resource_pool/{NAME}"),
    "token rotate": ("--yes", "site.yaml"),
    "init": (
        "new",
        "--from",
        "vc.small.test",
        "--user",
        "admin@small.test",
        "--trust",
        "ca.pem",
        "--sandbox",
        "world.yaml",
    ),
    "kinds": (NAME,),
    "explain": (NAME,),
    "help": (NAME,),
    "ova inspect": (f"{NAME}.ova",),
    "lint": ("pod.yaml",),
    "schedule systemd": ("broken.yaml",),
    "schedule cron": ("broken.yaml",),
    "schedule kubernetes": ("--image", NAME, "broken.yaml"),
    "operator site": ("broken.yaml",),
    "sandbox start": (f"{NAME}.yaml",),
    "sandbox stop": (NAME,),
    "sandbox reset": (NAME,),
    "sandbox status": (NAME,),
    "sandbox faults": (NAME,),
    "demo": ("site.yaml",),
}
WRITES = ("apply", "destroy", "import", "adopt", "init", "fmt")
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "annotations": {NAME: OBJECT}},
    "spec": {"containers": [{"name": OBJECT, "resources": {"limits": {"bitfusion.io/gpu-num": OBJECT}}}]},
}  # fmt: skip
NONE = {
    "completion": "a script, exactly; tests/cli/test_cli_shell.py",
    "schema": "the language alone, without names of others",
    "version": "the same",
    "operator run": "a log: tests/operator/test_foreign_words.py",
    "operator watcher": "the same",
    "operator job": "a result: the same file",
    "operator crd": "the language alone",
}
ALONE = {"graph": ("dot", "mermaid")}  # DOT and Mermaid have tests of their own
TAGS = {
    "html", "head", "body", "h3", "h4", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code", "pre", "br",
    "details", "summary",
}  # fmt: skip


class Form(NamedTuple):
    verb: str
    output: str

    def __str__(self) -> str:
        return f"{self.verb} {self.output}"


def leaves(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Form]:
    inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for name, each in (pair for action in inner for pair in action.choices.items()):
        yield from leaves(each, (*words, name))
    if not inner:
        outputs = next(each.choices for each in parser._actions if each.dest == "output")
        yield from (Form(" ".join(words), output) for output in outputs)


FOUND = list(leaves(build()))
FORMS = [form for form in FOUND if form.verb in COMMANDS and form.output not in ALONE.get(form.verb, ())]
SHORT = [str(form) for number, form in enumerate(FORMS) if number % 5 == 0]


def test_each_command_is_tried_or_has_a_reason():
    assert {form.verb for form in FOUND} == {*COMMANDS, *NONE}


class Site:
    """A folder with a site of which a part exists, a part has failed, and a part is to be changed."""

    def __init__(self, folder: Path, running: Running) -> None:
        self.folder, self.running, self.fresh = folder, running, False

    def prepare(self) -> None:
        if self.fresh:
            return
        self.running.reset()
        for name, site in {"site.yaml": SITE, "broken.yaml": {**SITE, NAME: {NAME: OBJECT}}}.items():
            (self.folder / name).write_text(yaml.safe_dump(site))
        (self.folder / "pod.yaml").write_text(yaml.safe_dump(POD))
        refused = {"soap": "InvalidName", "message": OBJECT}
        self.running.faults({"method": "CreateResourcePool", "do": refused, "nth": 2})
        assert main(["apply", "--yes", "site.yaml", "--world", "world.yaml"]) == 1
        self.running.faults()
        (self.folder / "ca.pem").write_bytes(self.running.ca_file.read_bytes())
        for name in ("site.yaml", "good.yaml"):
            (self.folder / name).write_text(yaml.safe_dump(CHANGED))
        (self.folder / "saved").unlink(missing_ok=True)
        assert main(["plan", "--out", "saved", "site.yaml", "--world", "world.yaml"]) == 0
        (self.folder / "site.yaml").write_text(yaml.safe_dump(WRONG))
        self.fresh = True


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("hostile")
    world = yaml.safe_load(SMALL_WORLD.read_text())
    world["networks"] = ["VM Network", OBJECT]
    world["datastores"][OBJECT] = {"capacity": "1TiB", "clusters": ["farm"]}
    world["storage_policies"][OBJECT] = {"datastores": ["shared"]}
    world["tags"][OBJECT] = {OBJECT: ["shared"]}
    world["content_libraries"][OBJECT] = {"datastore": OBJECT}
    (folder / "world.yaml").write_text(yaml.safe_dump(world))
    running = start(folder / "world.yaml", folder / "state", pace=0)
    yield Site(folder, running)
    stop(folder / "state")


@pytest.fixture
def site(hostile: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Site:
    monkeypatch.setattr(worlds, "embedded", lambda *_, **__: hostile.running)
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(hostile.folder / "journal"))
    monkeypatch.setenv("XDG_STATE_HOME", str(hostile.folder / "xdg"))
    monkeypatch.chdir(hostile.folder)
    if not hostile.fresh:
        shutil.rmtree("new", ignore_errors=True)
        hostile.prepare()
        out = capsys.readouterr().out
        assert "created after" in out, out
        assert "failed after" in out, out
    return hostile


def has_world(verb: str) -> bool:
    parser: Any = build()
    for word in verb.split():
        inner = next(each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        parser = inner.choices[word]
    return "--world" in parser._option_string_actions


@pytest.mark.thorough(*SHORT)
@pytest.mark.parametrize("form", FORMS, ids=map(str, FORMS))
def test_no_form_has_more_in_it_than_itself(
    form: Form, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    world = ["--world", "world.yaml"] if has_world(form.verb) and form.verb != "init" else []
    site.fresh = form.verb not in WRITES
    main([*form.verb.split(), *COMMANDS[form.verb], *world, "--output", form.output])
    out, err = capsys.readouterr()
    assert out or err
    for text in (out, err):
        assert judges.commands(text) == []
        assert acts(text.replace("\t", " ")) == []
        assert not [line for line in text.splitlines() if line.startswith(("forged", "::set-env"))]
    if form.output == "json" and out:
        json.loads(out)
    if form.output == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in out.splitlines())
    if form.output == "yaml":
        assert yaml.safe_load(out)
    if form.output == "markdown" and out and not out.startswith("{"):
        assert {tag for tag, _ in judges.markdown(out) if tag} <= TAGS
    if form.output in ("html", "svg"):
        assert {tag for tag, _ in judges.html(out)}.isdisjoint({"img", "script", "iframe"})
