"""What init and import write says what was meant, and nothing else, whatever servers call their objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from formats.texts import MEANINGS, TEXTS, WHOLE, tried
from hypothesis import example, given
from hypothesis import strategies as st

from bfinfra.model.errors import BfinfraError, SiteError
from bfinfra.model.refs import Key
from bfinfra.model.yaml import compose, unfit_key
from bfinfra.spec import writing
from bfinfra.spec.layout import formatted
from bfinfra.spec.site_text import commented, describing

NAMES = TEXTS.filter(lambda text: text and not unfit_key(text))
"""Names that a site can hold: without invisible characters."""
VALUES = st.recursive(
    TEXTS | st.integers(-9, 9) | st.booleans() | st.none() | st.just("0x10de"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)
VCENTER = {"server": "vc.test", "password": {"env": "VCENTER_PASSWORD"}}
LOOKS = "a\nlinux_host:\n  h:\n    address: 10.5.0.1\n    key: {command: [touch, ran]}\n#"
SITE = "# ours\nsite: mine  # its name\nvm_class:  # classes\n    mine: {cpus: 2}\n\n# pools\nresource_pool: {}\n"


def read(text: str) -> Any:
    root, problems = compose(Path("site.yaml"), text)
    assert not problems
    return root.plain() if root else {}


def as_text(value: Any) -> Any:
    """A value as a site's reader finds it: every scalar is text."""
    if isinstance(value, dict):
        return {name: as_text(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_text(each) for each in value]
    return value if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def to_fill_in(fields: dict[str, Any], what: str) -> dict[tuple[str, ...], str]:
    """A note at a field that is there, and one at a field that isn't."""
    return {(next(iter(fields)),): what, ("absent", what): what}


@tried
@given(st.dictionaries(NAMES, FIELDS, max_size=3), st.lists(st.tuples(WHOLE, WHOLE), max_size=3), WHOLE)
@example({"vm": {"f": ["? a"]}}, [(LOOKS, "a\u2028site: other")], LOOKS)
def test_a_described_site_has_what_was_described_alone(
    found: dict[str, dict[str, Any]], left_out: list[tuple[str, str]], note: str
) -> None:
    resources = {Key("vm", name): (fields, to_fill_in(fields, note)) for name, fields in found.items()}
    text = describing("poc", VCENTER, resources, left_out)
    wanted = {"site": "poc", "vcenter": VCENTER, **({"vm": as_text(found)} if found else {})}
    assert read(text) == wanted
    assert read(formatted(Path("site.yaml"), text)) == wanted
    assert yaml.load(text, yaml.BaseLoader).keys() == wanted.keys()
    assert all(line.isprintable() for line in text.split("\n"))


@tried
@given(NAMES, FIELDS, WHOLE, st.sampled_from(["vm_class", "resource_pool", "library"]))
@example("a", {"f": 1}, LOOKS, "vm_class")
def test_an_object_is_put_into_a_file_alone(name: str, fields: dict[str, Any], note: str, kind: str) -> None:
    if kind == "resource_pool":
        with pytest.raises(BfinfraError, match="is written on one line"):
            writing.inserted(SITE, kind, name, fields, {})
        return
    text = writing.inserted(SITE, kind, name, fields, to_fill_in(fields, note))
    before = read(SITE)
    assert read(text) == {**before, kind: {**before.get(kind, {}), name: as_text(fields)}}
    assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("comment", ["\u2028", "a\u2028", "\x85#", "\r\n"])
def test_a_line_is_put_where_the_block_ends_whatever_parts_lines_in_comments(comment: str) -> None:
    """What one reader takes for the end of a line, and another doesn't, moves no line."""
    text = f"site: mine  # {comment}# more\nvm_class:\n  mine: {{cpus: 2}}\nresource_pool: {{}}\n"
    found = writing.inserted(text, "vm_class", "new", {"cpus": 1}, {})
    assert found.index("new:") < found.index("resource_pool")
    assert read(found)["vm_class"] == {"mine": {"cpus": "2"}, "new": {"cpus": "1"}}


@pytest.mark.parametrize("lost", [lambda text: text + "more: 1\n", lambda text: text.replace("a: b", "a: c")])
def test_a_text_that_would_be_read_otherwise_is_refused(lost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dumped = writing._dumped
    monkeypatch.setattr(writing, "_dumped", lambda made: lost(dumped(made)))
    with pytest.raises(BfinfraError, match="can't be written so that it is read again as it is"):
        describing("poc", VCENTER, {Key("vm", "x"): ({"a": "b"}, {})}, [])
    with pytest.raises(BfinfraError, match="can't be written so that it is read again as it is"):
        writing.inserted(SITE, "vm_class", "x", {"a": "b"}, {})


@pytest.mark.parametrize("name", [LOOKS, "no", "a: b", *MEANINGS])
def test_the_name_of_a_commented_site_is_its_name_alone(name: str) -> None:
    assert read(commented(name)).keys() == {"site", "vcenter"}
    assert read(commented(name))["site"] == (None if name in ("~", "null") else name) or name in ("~", "null")


def test_half_of_a_character_is_refused_by_name() -> None:
    with pytest.raises((BfinfraError, SiteError), match="vm can't be written"):
        describing("poc", VCENTER, {Key("vm", "x"): ({"a": "\ud800"}, {})}, [])
