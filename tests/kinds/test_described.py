"""What stands is described by its kind, in the words of a site that agrees with it: every kind by its existing.

The kind's example is applied, every mark is taken off, and the site that `bfinfra init --from` or `bfinfra
import` writes is adopted: no field may change. The same on vcsim is in tests/peers/test_described_on_vcsim.py,
on a recorded vCenter in tests/recorded/test_vcenter_of_vmc.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from forgotten import forget
from kinds.lifecycle import EXAMPLES, QUICK, SPECS, apply, endings, made, run_context

import bfinfra
from bfinfra.app import init
from bfinfra.app.describe import describable, describe
from bfinfra.app.import_object import import_object
from bfinfra.engine.apply import Options
from bfinfra.kinds import kind as kind_named
from bfinfra.kinds import names
from bfinfra.model.compare import UNFINISHED
from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

VCENTER = {
    "server": "vc.small.test",
    "username": "admin@small.test",
    "password": {"env": "VCENTER_PASSWORD"},
    "trust": {"ca_file": "ca.pem"},
}
FLAWS = SPECS.parent / "docs/explanation/flaws.md"


@pytest.fixture
def existing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A sandbox of the test's own, as it is stopped amid the test."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "xdg"))
    yield start(SMALL_WORLD, tmp_path / "state", pace=0)
    stop(tmp_path / "state")


def changed(site: Site, running: Running) -> dict[str, list[str]]:
    """By address, the fields that an adoption of all would change; and whatever is wrong with the plan."""
    found = bfinfra.plan(site, adopt=frozenset(site.resources), context=run_context(running))
    assert not found.problems, found.problems
    assert not found.unreadable, found.unreadable
    assert {item.key for item in found.items} >= set(site.resources)
    fields = {str(item.key): [each.field for each in item.changes] for item in found.items}
    assert not [item.key for item in found.items if item.action.value == "create"]
    return {key: more for key, each in fields.items() if (more := [f for f in each if f != UNFINISHED])}


def written(folder: Path, running: Running, *only: str) -> Path:
    """The site that init writes."""
    site = init.empty("mine", VCENTER, folder, sandbox=running)
    found = init.described(site, VCENTER, only=frozenset(only), context=run_context(running))
    assert not found.differing, found.differing
    (folder / "site.yaml").write_text(found.text)
    return folder / "site.yaml"


def imported(kind: str, folder: Path, running: Running) -> Path:
    """The kind's example without its block, into which each of its objects is imported."""
    example = yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader)
    objects = example.pop(kind)
    path = folder / "site.yaml"
    path.write_text(yaml.safe_dump({**example, "site": "mine"}, sort_keys=False))
    for name in objects:

        def again() -> Site:
            return bfinfra.load(path, sandbox=running)

        import_object(again(), Key(kind, name), again, context=run_context(running))
    return path


@pytest.mark.thorough("vm_class")
@pytest.mark.parametrize("kind", describable())
def test_existing_objects_are_described_and_adopting_them_changes_no_field(
    kind: str, existing: Running, tmp_path: Path
) -> None:
    example = EXAMPLES[kind]
    done = apply(example, existing)
    assert made(done), endings(done)
    running = forget(existing, SMALL_WORLD)
    running.clear_tally()
    inside = "kubernetes_cluster" in example.read_text()
    path = imported(kind, tmp_path, running) if inside else written(tmp_path, running, kind)
    site = bfinfra.load(path, sandbox=running)
    assert any(key.kind == kind for key in site.resources)
    assert changed(site, running) == {}
    assert running.tally()["written"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("singapore-poc", {"gpu_host", "bitfusion_server", "supervisor_namespace", "tanzu_cluster"}),
        ("vks-gpu", {"host_graphics", "vm_class", "supervisor_namespace", "vks_cluster", "vks_addon"}),
        ("dlvm", {"service_vm", "supervisor_namespace"}),
    ],
)
def test_a_whole_site_is_described_adopted_and_agrees(
    name: str, kinds: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "xdg"))
    world = SPECS / f"worlds/{name}.yaml"
    running = start(world, tmp_path / "state", pace=0)
    try:
        done = apply(SPECS / f"{name}.yaml", running)
        assert made(done), endings(done)
        running = forget(running, world)
        vcenter = {
            **yaml.load((SPECS / f"{name}.yaml").read_text(), yaml.BaseLoader)["vcenter"],
            "password": {"env": "VCENTER_PASSWORD"},
        }
        site = init.empty("mine", vcenter, tmp_path, sandbox=running)
        found = init.described(site, vcenter, context=run_context(running))
        assert found.differing == {}
        path = tmp_path / "site.yaml"
        path.write_text(found.text)
        site = bfinfra.load(path, sandbox=running)
        assert kinds <= {key.kind for key in site.resources}, found.left_out
        adopted = bfinfra.apply(
            site, adopt_all=True, options=Options(retry=QUICK), context=run_context(running)
        )
        assert made(adopted), endings(adopted)
        again = bfinfra.plan(bfinfra.load(path, sandbox=running), context=run_context(running))
        assert (again.problems, again.pending) == ((), ())
    finally:
        stop(tmp_path / "state")


def test_what_another_site_made_is_left_out_and_named(existing: Running, tmp_path: Path) -> None:
    assert made(apply(EXAMPLES["vm_class"], existing))
    site = init.empty("mine", VCENTER, tmp_path, sandbox=existing)
    found = init.described(site, VCENTER, only=frozenset({"vm_class"}), context=run_context(existing))
    assert found.left_out["vm_class/gpu-small"] == "it belongs to vm_class/gpu-small of the site example"
    assert Key("vm_class", "gpu-small") not in found.resources
    assert "#   vm_class/gpu-small: it belongs to" in found.text


def test_the_kinds_of_a_server_that_is_not_trusted_are_left_out_and_named_together(
    existing: Running, tmp_path: Path
) -> None:
    assert made(apply(EXAMPLES["supervisor_namespace"], existing))
    vcenter = VCENTER | {"supervisor_trust": {"sha256": "ab" * 32}}
    site = init.empty("mine", vcenter, tmp_path, sandbox=existing)
    found = init.described(site, vcenter, context=run_context(existing))
    assert "certificate" in found.left_out["service_vm, tanzu_cluster, vks_addon, vks_cluster"]
    assert found.differing == {}
    assert "vm_class" in {key.kind for key in found.resources}


def test_the_same_world_gives_the_same_text(existing: Running, tmp_path: Path) -> None:
    first = written(tmp_path, existing).read_text()
    assert written(tmp_path, existing).read_text() == first
    kinds = re.findall(r"^(\w+):$", first, re.MULTILINE)
    assert kinds[1:] == sorted(kinds[1:])


@pytest.mark.parametrize("kind", sorted({*names()} - {*describable()}))
def test_a_kind_that_can_not_be_described_says_why_and_the_flaws_have_it(kind: str) -> None:
    why = kind_named(kind).undescribed
    assert f"| `{kind}` | {why} |" in FLAWS.read_text()
    with pytest.raises(BfinfraError, match=re.escape(why)):
        describe(init.empty("mine", VCENTER, Path()), only=frozenset({kind}))


def test_the_flaws_have_no_kind_that_can_be_described() -> None:
    section = FLAWS.read_text().partition("## What init and import leave out")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \| ", section, re.MULTILINE)
    assert set(listed) == {*names()} - {*describable()}
