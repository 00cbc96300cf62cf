"""What init and import write of objects whose names are YAML, shell and separators: every kind by its existing.

The kind's example is applied, and its objects and what they refer to get such names on the server. The site that is
written holds the objects that were found, by their names, and no other resource, setting or command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from forgotten import forget
from kinds.lifecycle import EXAMPLES, apply, endings, made, run_context
from renamed import rename

import bfinfra
from bfinfra.app import init
from bfinfra.app.describe import describable
from bfinfra.app.import_object import import_object
from bfinfra.formats.visible import visible
from bfinfra.kinds import groups, spec
from bfinfra.model.errors import BfinfraError
from bfinfra.model.initial import Initial
from bfinfra.model.refs import Key, edges
from bfinfra.model.secret import Secret
from bfinfra.model.yaml import compose
from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

VCENTER = {
    "server": "vc.small.test",
    "username": "admin@small.test",
    "password": {"env": "VCENTER_PASSWORD"},
    "trust": {"ca_file": "ca.pem"},
}
VISIBLE = """:{[&x,*y]}#!|>'"@`-?=$(id)"""
HIDDEN = {
    "line breaks": "\nlinux_host:\n  h:\n    address: 10.5.0.1\n    key: {command: [touch, ran]}\n#",
    "separators": "\u2028linux_host:\u2029  h: {address: 10.5.0.1}\x85site: other\u2028#",
    "carriage returns": "\rlinux_host: {h: {address: 10.5.0.1}}\r\n#",
    "bidirectional marks": "\u202e}1.0.5.01 :sserdda{ :h\u2066",
}
"""What no name of a site can have."""
NAMED = [kind for kind in describable() if groups()[kind] != "supervisor"]
"""Kinds whose objects can have such names; a supervisor's API server refuses them."""


@pytest.fixture
def existing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A sandbox of the test's own. No secret of a site is a command."""

    def run(self: Secret) -> str:
        raise AssertionError(f"a command was run: {self}")

    monkeypatch.setattr(Secret, "_from_command", run)
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "xdg"))
    yield start(SMALL_WORLD, tmp_path / "state", pace=0)
    stop(tmp_path / "state")


def with_names(kind: str, running: Running, more: str) -> tuple[Running, dict[str, str]]:
    """The kind's example, applied and forgotten. Every name in it that is an object's gets more behind it."""
    done = apply(EXAMPLES[kind], running)
    assert made(done), endings(done)
    example = yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader)
    words = {word for blocks in example.values() for word in words_of(blocks)}
    running = forget(running, SMALL_WORLD)
    return rename(running, SMALL_WORLD, lambda name: name + more if name in words else None)


def words_of(blocks: Any) -> Iterator[str]:
    """Names of resources, and values of fields that have a letter."""
    if isinstance(blocks, dict):
        yield from (name for name, fields in blocks.items() if isinstance(fields, dict))
        for each in blocks.values():
            yield from words_of(each)
    elif isinstance(blocks, list):
        for each in blocks:
            yield from words_of(each)
    elif re.search("[a-z]{3}", blocks) and blocks not in FIELDS:
        yield blocks


FIELDS = {"management", "networks", "host", "type", "datastore", "network"}
"""Words of vCenter's own, which are no names."""


def described(folder: Path, running: Running) -> Initial:
    site = init.empty("mine", VCENTER, folder, sandbox=running)
    return init.described(site, VCENTER, context=run_context(running))


def holds_only(found: Initial, path: Path, running: Running) -> None:
    """The file is a site of what was found, and says nothing else to any reader of its keys."""
    path.write_text(found.text)
    assert all(line.isprintable() for line in found.text.split("\n"))
    root, problems = compose(path, found.text)
    assert root is not None
    assert not problems
    kinds = {key.kind for key in found.resources}
    assert root.plain().keys() == {"site", "vcenter", *kinds}
    site = bfinfra.load(path, sandbox=running)
    assert set(site.resources) == set(found.resources)
    assert (site.name, site.vcenter and site.vcenter.server) == ("mine", "vc.small.test")
    bfinfra.plan(site, context=run_context(running))


def own(kind: str, new: dict[str, str]) -> list[Key]:
    """The example's resources that are objects with a name, by their new names."""
    names = yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader)[kind]
    sent = str if kind in OF_REST else in_xml
    return [Key(kind, sent(new[name])) for name in names if name in new]


OF_REST = ("content_library", "vm_class")
"""Kinds whose names come as JSON."""


def in_xml(name: str) -> str:
    """A name as it comes out of XML, which knows one line break (XML 1.0, 2.11)."""
    return name.replace("\r\n", "\n").replace("\r", "\n")


def imports(key: Key, folder: Path, running: Running) -> None:
    """Put the object into a file of its own site."""
    path = folder / "imported.yaml"
    path.write_text(yaml.safe_dump({"site": "mine", "vcenter": VCENTER}))

    def again() -> bfinfra.Site:
        return bfinfra.load(path, sandbox=running)

    import_object(again(), key, again, context=run_context(running))
    assert set(again().resources) == {key}


@pytest.mark.thorough("virtual_machine")
@pytest.mark.parametrize("kind", NAMED)
def test_names_of_visible_characters_are_kept_as_they_are(
    kind: str, existing: Running, tmp_path: Path
) -> None:
    running, new = with_names(kind, existing, VISIBLE)
    found = described(tmp_path, running)
    holds_only(found, tmp_path / "site.yaml", running)
    assert new or groups()[kind] != "vcenter"
    for key in own(kind, new):
        fits = re.fullmatch(spec(kind).name_pattern, key.name)
        assert (key in found.resources) == bool(fits), found.left_out
        if fits and not edges(found_spec(tmp_path, key, running)):
            imports(key, tmp_path, running)


@pytest.mark.thorough("virtual_machine-line breaks")
@pytest.mark.parametrize("more", HIDDEN)
@pytest.mark.parametrize("kind", NAMED)
def test_names_that_no_site_can_have_are_left_out_and_shown(
    kind: str, more: str, existing: Running, tmp_path: Path
) -> None:
    running, new = with_names(kind, existing, HIDDEN[more])
    found = described(tmp_path, running)
    holds_only(found, tmp_path / "site.yaml", running)
    for key in own(kind, new):
        assert found.left_out[str(key)].startswith("its name contains an invisible character")
        assert f"#   {visible(key)}: its name contains" in found.text
        with pytest.raises(BfinfraError, match="its name contains an invisible character"):
            imports(key, tmp_path, running)


def test_twins_under_such_a_name_are_left_out_once(existing: Running, tmp_path: Path) -> None:
    apply(EXAMPLES["virtual_machine"], existing)
    running = forget(existing, SMALL_WORLD)
    twin = HIDDEN["line breaks"]
    running, _ = rename(running, SMALL_WORLD, {"sckubw01": twin, "centos-7.6": twin}.get)
    found = described(tmp_path, running)
    holds_only(found, tmp_path / "site.yaml", running)
    assert [key for key in found.left_out if key.startswith("virtual_machine/")] == [
        f"virtual_machine/{twin}"
    ]


def found_spec(folder: Path, key: Key, running: Running) -> Any:
    return bfinfra.load(folder / "site.yaml", sandbox=running).resources[key]
