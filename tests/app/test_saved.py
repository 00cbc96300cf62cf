"""A saved plan: made in one folder, applied in another; refused where what it was made from is another."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, SPECS, run_context

import bfinfra
from bfinfra.app import saved, saved_files
from bfinfra.app.saved import SavedPlan
from bfinfra.app.saved_plan import plan_of
from bfinfra.cli.main import main
from bfinfra.cli.screen import unit
from bfinfra.engine.graph import waits
from bfinfra.model.errors import BfinfraError, Diverged
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.variant import PLAIN, Given, Variant
from bfinfra.render import data, markdown, plan_page, text
from bfinfra.render.style import Style
from bfinfra.sandbox import SMALL_WORLD, Running
from bfinfra.spec.load import load as load_files

pytestmark = pytest.mark.thorough

SITE = """\
site: example
values:
  memory: {description: Of the namespace.}
vcenter:
  server: vc.small.test
  username: admin@small.test
  password: {env: VCENTER_PASSWORD}
  trust: {ca_file: certs/ca.pem}
vm_class:
  big: {cpus: 2, memory: 4GiB}
supervisor_namespace:
  team-a: {cluster: compute, limits: {memory: {value: memory}}, vm_classes: [big]}
"""
PROD = "vm_class: {big: {cpus: 4}}\n"
GIVEN = (Given("memory", "2GiB", "--set memory"),)


@dataclass(frozen=True)
class Checkout:
    """A folder with the site, as one CI job has it and another one: the certificate is a file in it."""

    folder: Path
    sandbox: Running

    @classmethod
    def of(cls, folder: Path, sandbox: Running) -> Checkout:
        (folder / "certs").mkdir(parents=True)
        (folder / "overlays").mkdir()
        (folder / "site.yaml").write_text(SITE)
        (folder / "overlays/prod.yaml").write_text(PROD)
        shutil.copy(Path(sandbox.files) / "ca.pem", folder / "certs/ca.pem")
        return cls(folder, sandbox)

    def load(self, paths: list[Path] | None = None, variant: Variant | None = None) -> Site:
        return load_files(
            paths or [self.folder / "site.yaml"],
            variant=variant or Variant((self.folder / "overlays/prod.yaml",), (), GIVEN),
            env={**os.environ, **self.sandbox.env},
        )

    def plan(self, file: Path, **how: Any) -> Path:
        site = self.load()
        saved.save_plan(file, site, bfinfra.plan(site, context=run_context(self.sandbox), **how))
        return file

    def apply(self, file: Path) -> Any:
        found = SavedPlan.read(file)
        site = self.load(*found.at(self.folder))
        return bfinfra.apply(site, saved=found, targets=found.targets, context=run_context(self.sandbox))


@pytest.fixture
def here(tmp_path: Path, sandbox: Running) -> Checkout:
    return Checkout.of(tmp_path / "a/site", sandbox)


@pytest.fixture
def there(tmp_path: Path, sandbox: Running) -> Checkout:
    return Checkout.of(tmp_path / "b/elsewhere/site", sandbox)


def test_a_plan_made_in_one_folder_is_applied_in_another_from_another_home(
    here: Checkout, there: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home-a"))
    file = here.plan(tmp_path / "plan.json")
    shutil.rmtree(here.folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home-b"))
    found = there.apply(file)
    assert (found.ending, {str(key) for key in found.endings}) == (
        "done",
        {"vm_class/big", "supervisor_namespace/team-a"},
    )
    again = bfinfra.plan(there.load(), context=run_context(there.sandbox))
    assert again.pending == ()


@pytest.mark.thorough("namespace", "virtual_machine")
@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_plan_of_every_kind_is_the_same_in_another_folder(
    kind: str, sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name in ("one", "another/one"):
        folder = tmp_path / name / "site"
        shutil.copytree(sandbox.files, folder)
        for part in ("manifests", "cloud-init"):
            shutil.copytree(SPECS / part, folder.parent / part)
            shutil.copytree(SPECS / part, folder / part, dirs_exist_ok=True)
        shutil.copytree(SPECS / "kinds", folder, dirs_exist_ok=True)
        monkeypatch.setenv("HOME", str(tmp_path / name))
        site = load_files([folder / f"{kind}.yaml"], env={**os.environ, **sandbox.env})
        plan = bfinfra.plan(site, context=run_context(sandbox))
        found.append((saved.portable(site, plan), saved.contents(site, folder)))
        assert str(tmp_path) not in json.dumps(found[-1])
    assert found[0] == found[1]


def test_without_a_folder_it_is_applied_where_it_was_made(here: Checkout, tmp_path: Path) -> None:
    found = SavedPlan.read(here.plan(tmp_path / "plan.json"))
    paths, variant = found.at(None)
    assert paths == [here.folder / "site.yaml"]
    assert variant == Variant((here.folder / "overlays/prod.yaml",), (), GIVEN)


def test_where_the_folder_is_gone_the_other_one_is_asked_for(here: Checkout, tmp_path: Path) -> None:
    file = here.plan(tmp_path / "plan.json")
    shutil.rmtree(here.folder)
    with pytest.raises(BfinfraError) as caught:
        SavedPlan.read(file).at(None)
    assert str(caught.value) == (
        f"{here.folder}: the site's folder is not here; the plan was made there; name it: bfinfra apply "
        f"{file} --site FOLDER"
    )


@pytest.mark.parametrize("name", ["site.yaml", "overlays/prod.yaml", "certs/ca.pem"])
def test_a_file_that_is_another_refuses_the_plan_and_is_named(
    name: str, here: Checkout, there: Checkout, tmp_path: Path
) -> None:
    file = here.plan(tmp_path / "plan.json")
    with (there.folder / name).open("a") as stream:
        stream.write("\n")
    with pytest.raises(Diverged) as caught:
        there.apply(file)
    assert str(caught.value) == (
        f"{there.folder / name}: {name} has changed since the plan was made; plan again"
    )


def test_a_file_that_is_missing_refuses_the_plan_and_is_named(
    here: Checkout, there: Checkout, tmp_path: Path
) -> None:
    file = here.plan(tmp_path / "plan.json")
    (there.folder / "overlays/prod.yaml").unlink()
    with pytest.raises(Diverged) as caught:
        there.apply(file)
    missing = there.folder / "overlays/prod.yaml"
    assert str(caught.value) == (
        f"{missing}: overlays/prod.yaml has changed since the plan was made; there is no {missing}; plan "
        "again"
    )


def test_a_file_that_came_into_the_sites_folder_refuses_the_plan(here: Checkout, tmp_path: Path) -> None:
    def load() -> Site:
        return here.load([here.folder], Variant(given=GIVEN))

    site, file = load(), tmp_path / "plan.json"
    saved.save_plan(file, site, bfinfra.plan(site, context=run_context(here.sandbox)))
    (here.folder / "more.yaml").write_text("x-nothing: here\n")
    found = SavedPlan.read(file)
    site = here.load(*found.at(None))
    with pytest.raises(Diverged, match=r"more\.yaml has changed since the plan was made"):
        bfinfra.apply(site, saved=found, context=run_context(here.sandbox))


def test_servers_that_moved_on_refuse_the_plan(here: Checkout, tmp_path: Path) -> None:
    file = here.plan(tmp_path / "plan.json")
    here.apply(file)
    with pytest.raises(Diverged, match="vm_class/big is no longer as planned; planned: create"):
        here.apply(file)


def test_no_secret_is_in_a_plan(here: Checkout, tmp_path: Path) -> None:
    held = here.plan(tmp_path / "plan.json").read_text()
    assert here.sandbox.env["VCENTER_PASSWORD"] not in held
    assert not any(name for name in json.loads(held)["contents"] if "password" in name)


def test_a_plan_is_shown_as_it_was(here: Checkout, tmp_path: Path) -> None:
    site = here.load()
    plan = bfinfra.plan(site, context=run_context(here.sandbox))
    saved.save_plan(tmp_path / "plan.json", site, plan)
    again = plan_of(SavedPlan.read(tmp_path / "plan.json").plan)
    assert text.plan(again) == text.plan(plan)
    assert markdown.plan(again) == markdown.plan(plan)
    assert data.text(data.plan(again)) == data.text(saved.portable(site, plan))


@pytest.mark.parametrize("output", ["text", "json", "jsonl", "markdown"])
def test_show_prints_a_plan_in_every_output(
    output: str, here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = here.plan(tmp_path / "plan.json")
    assert main(["show", str(file), "--output", output]) == 0
    assert "supervisor_namespace" in capsys.readouterr().out


def test_show_writes_the_page_that_plan_writes(here: Checkout, tmp_path: Path) -> None:
    site, page = here.load(), tmp_path / "page.html"
    file = here.plan(tmp_path / "plan.json")
    assert main(["show", str(file), "--html", str(page)]) == 0
    planned = bfinfra.plan(site, context=run_context(here.sandbox))
    before = waits(site.resources, {})
    assert before[Key.parse("supervisor_namespace/team-a")] == {Key.parse("vm_class/big"): ""}
    assert page.read_text() == plan_page.plan(planned, site.resources, before, Style(units=unit))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"format_version": 1, "site": "s", "destroy": False, "files": {}, "items": {}},
            (
                "the plan has format version 1, this bfinfra reads 2; another version of bfinfra made it; "
                "plan again: "
                "bfinfra plan SITE --out FILE"
            ),
        ),
        (
            {"format_version": 1, "type": "plan", "site": "s", "items": []},
            (
                "not a saved plan, but a plan as it is printed; a printed plan does not contain what it was "
                "made from; "
                "make one with: bfinfra plan SITE --out FILE"
            ),
        ),
        (
            {"format_version": 2, "type": "saved_plan"},
            "not a saved plan; a part of it is missing or damaged; make one with: bfinfra plan SITE --out FILE",
        ),
        (
            [],
            "not a saved plan; a part of it is missing or damaged; make one with: bfinfra plan SITE --out FILE",
        ),
    ],
)
def test_what_is_no_plan_of_this_version_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(BfinfraError) as caught:
        SavedPlan.read(tmp_path / "plan.json")
    assert str(caught.value) == f"{tmp_path / 'plan.json'}: {message}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "memory=4GiB"], "--set can't be given to a saved plan"),
        (
            ["--overlay", "x.yaml", "--target", "vm_class/big"],
            "--overlay, --target can't be given to a saved plan",
        ),
        (["more.yaml"], "give a saved plan alone"),
    ],
)
def test_a_plan_takes_nothing_besides(
    words: list[str], message: str, here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = here.plan(tmp_path / "plan.json")
    assert main(["apply", "--yes", str(file), *words]) == 1
    assert message in capsys.readouterr().err


def test_a_folder_goes_with_a_plan_alone(here: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["apply", "--yes", str(here.folder / "site.yaml"), "--site", str(here.folder)]
    assert main(words) == 1
    assert "--site needs a saved plan" in capsys.readouterr().err


def test_a_text_that_is_no_json_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("site: s\n")
    with pytest.raises(BfinfraError, match="not a saved plan; it is not JSON"):
        SavedPlan.read(tmp_path / "site.yaml")


def test_the_file_of_another_site_refuses_the_plan(
    here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = here.plan(tmp_path / "plan.json")
    other = here.folder / "other.yaml"
    other.write_text("site: other\n")
    assert main(["apply", str(file), "--site", str(other), "--yes"]) == 1
    assert f"the plan was not made from {other}" in capsys.readouterr().err


def test_the_command_line_plans_in_one_folder_and_applies_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    where = ("--sandbox", "--world", str(SMALL_WORLD))
    for name in ("a", "b"):
        (tmp_path / name / "overlays").mkdir(parents=True)
        (tmp_path / name / "site.yaml").write_text(SITE.replace("certs/ca.pem", "ca.pem"))
        (tmp_path / name / "overlays/prod.yaml").write_text(PROD)
    monkeypatch.chdir(tmp_path / "a")
    try:
        how = ("--overlay", "overlays/prod.yaml", "--set", "memory=2GiB", "--out", "../plan.json")
        assert main(["plan", "site.yaml", *how, *where]) == 0
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(tmp_path / "a")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert main(["apply", "plan.json", "--site", "b", "--yes", *where]) == 0
        assert "example: done" in capsys.readouterr().out
    finally:
        main(["sandbox", "stop", "--world", str(SMALL_WORLD)])


def test_a_plan_of_the_plain_site_has_no_variant(here: Checkout, tmp_path: Path) -> None:
    (here.folder / "site.yaml").write_text(SITE.replace("{value: memory}", "1GiB"))
    site = here.load([here.folder / "site.yaml"], PLAIN)
    saved.save_plan(tmp_path / "plan.json", site, bfinfra.plan(site, context=run_context(here.sandbox)))
    assert SavedPlan.read(tmp_path / "plan.json").at(None)[1] == PLAIN


def test_a_site_s_files_are_read_once_for_their_digests(
    here: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = here.plan(tmp_path / "plan.json")
    hashed: list[str] = []

    def digest(path: Path) -> str:
        hashed.append(path.name)
        return saved_files_digest(path)

    saved_files_digest = saved_files.digest
    monkeypatch.setattr(saved_files, "digest", digest)
    here.apply(file)
    assert "site.yaml" not in hashed  # its digest is of what was loaded
    assert hashed.count("ca.pem") == 1
