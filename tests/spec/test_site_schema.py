"""The schema that editors get, checked by an independent validator."""

from __future__ import annotations

import fnmatch
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from grove import GROVE, problems, site

from bfinfra.cli import main
from bfinfra.spec.schema import schema

SPECS = Path(__file__).parents[2] / "specs"
EXAMPLES = sorted(p for p in SPECS.rglob("*.yaml") if "site:" in p.read_text() and "worlds" not in p.parts)
WHOLE = schema(GROVE)
RIGHT = """
site: 12
vcenter: {server: v, password: {env: P}, trust: {ca_file: a.pem}}
x-anything: [1, {2: 3}]
tree:
  oak: {grows: fast, label: 1.20, evergreen: true, device: 0x10de, rings: [1], trunk: {leaves: 2KiB}, size: any, branches: {a: {length: 2}}}
  elm: {device: "10de", near: oak, key: {command: [pass, show]}, trunk: {leaves: 1048576}, size: 4}
pole: {p: , q: {height: 4}}
nest: {n: {tree: p, friends: [n2]}, n2: {tree: q}}
"""


@functools.cache
def every() -> dict[str, Any]:
    """Of all kinds; nobody changes it."""
    return schema()


def wrong(text: str) -> list[str]:
    found = jsonschema.Draft7Validator(WHOLE).iter_errors(yaml.safe_load(text))
    return [error.message for error in found]


def test_it_is_a_draft_07_schema() -> None:
    jsonschema.Draft7Validator.check_schema(WHOLE)
    assert WHOLE["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_what_loads_is_right_in_an_editor(tmp_path: Path) -> None:
    assert len(site(tmp_path, RIGHT, env={"P": "x"}).resources) == 6
    assert wrong(RIGHT) == []


@pytest.mark.parametrize(
    "text",
    [
        "site: g\ntre: {}",
        "site: g\ntree: {oak: {grow: fast}}",
        "site: g\ntree: {oak: {grows: fats}}",
        "site: g\ntree: {Oak: {}}",
        "site: g\nnest: {n: {}}",
        "site: g\nnest: {n: }",
        "site: g\nvcenter: {server: v, password: hunter2}",
        "site: g\ntree: {oak: {trunk: {leaves: many}}}",
        "site: g\ntree: {oak: {rings: [x]}}",
        "site: g\ntree: {oak: {trunk: {length: 12}}}",
        "[a]",
    ],
)
def test_what_does_not_load_is_wrong_in_an_editor(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text)
    assert wrong(text)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from nodes(value)
    elif isinstance(node, list):
        for value in node:
            yield from nodes(value)


def test_every_pointer_leads_somewhere_and_has_no_siblings() -> None:
    pointers = [node for node in nodes(WHOLE) if "$ref" in node]
    assert pointers
    for node in pointers:
        assert list(node) == ["$ref"], "draft-07 ignores what stands beside"
        assert node["$ref"].removeprefix("#/definitions/") in WHOLE["definitions"]


def test_a_reference_says_whose_name_it_is() -> None:
    nest = WHOLE["definitions"]["nest"]["properties"]
    assert nest["tree"]["description"] == "What carries it. Name of a pole or tree of this site."
    assert nest["friends"]["description"] == "Other nests. Name of a nest of this site."


def test_fields_carry_their_documentation_and_nothing_of_pydantic() -> None:
    assert WHOLE["definitions"]["tree"]["properties"]["grows"]["description"] == "How it grows."
    assert "title" not in WHOLE["definitions"]["tree"]["properties"]["grows"]


def test_every_object_has_a_title_as_schemastore_asks() -> None:
    whole = every()
    bare = [node for node in nodes(whole) if node.get("type") == "object" and "title" not in node]
    assert bare == []
    titles = {node["title"] for node in nodes(whole["definitions"]) if isinstance(node.get("title"), str)}
    assert {"gpu_host", "gpu_host passthrough", "value reference"} <= titles
    assert not [title for title in titles if title[:1].isupper() or title[-1] in ".:"]


def test_what_does_not_fit_a_pattern_is_reported_in_words() -> None:
    limits = every()["definitions"]["supervisor_namespace.Limits"]["properties"]
    messages = {node["pattern"]: node["patternErrorMessage"] for node in nodes(limits) if "pattern" in node}
    assert any(words.startswith("Expected something such as 48GHz.") for words in messages.values()), messages
    assert every()["properties"]["namespace"]["propertyNames"]["patternErrorMessage"] == (
        "Expected a name: lower-case letters, digits and dashes, with a letter or digit at both ends, "
        "at most 63 characters."
    )
    silent = [node for node in nodes(every()) if isinstance(node.get("pattern"), str)]
    assert all(node.get("patternErrorMessage") or "description" in node for node in silent)


def test_the_entry_for_schemastores_catalog_names_this_schema() -> None:
    entry = json.loads((SPECS.parent / "deploy/schemastore/catalog-entry.json").read_text())
    assert set(entry) == {"name", "description", "fileMatch", "url"}
    assert entry["url"] == every()["$id"]
    assert [name for name in entry["fileMatch"] if fnmatch.fnmatch("poc.bfinfra.yaml", name)]
    assert not [name for name in entry["fileMatch"] if fnmatch.fnmatch("poc.bfinfra_inventory.yaml", name)]


def test_a_file_that_editors_take_for_a_site_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "poc.bfinfra.yaml").write_text("site: g\nvm_class: {small: {cpus: 1, memory: 2GiB}}\n")
    assert main(["validate", str(tmp_path / "poc.bfinfra.yaml"), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["valid"] is True


def test_every_field_of_every_kind_is_documented() -> None:
    whole = every()
    bare = [
        f"{name}.{field}"
        for name, model in whole["definitions"].items()
        for field, node in model.get("properties", {}).items()
        if "description" not in node and not any("$ref" in inner for inner in nodes(node))
    ]
    assert bare == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda p: str(p.relative_to(SPECS)))
def test_every_example_is_right_in_an_editor(file: Path) -> None:
    found = jsonschema.Draft7Validator(every()).iter_errors(yaml.safe_load(file.read_text()))
    assert [error.message for error in found] == []


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (
            "values: {v: {type: list, default: [1], description: Rings.}}\ntree: {oak: {rings: {value: v}}}",
            True,
        ),
        (
            "site: {value: v}\ntree: {oak: {grows: {value: v}, trunk: {value: v}, rings: [1, {value: v}]}}",
            True,
        ),
        ("tree: {oak: {key: {env: {value: v}}, branches: {a: {length: {value: v}}}}}", True),
        ("tree: {oak: {key: {value: v}, branches: {a: {value: v}}, size: {value: v}}}", True),
        ("tree: {oak: {value: v}}", True),
        ("tree: {oak: {label: {value: v, more: 1}}}", False),
        ("tree: {oak: {label: {valu: v}}}", False),
        ("tree: {oak: {trunk: {value: [v]}}}", False),
        ("values: {v: {type: text}}", False),
        ("values: {v: {typ: string}}", False),
        ("values: {1v: {}}", False),
    ],
)
def test_a_value_is_valid_wherever_a_fields_value_is(text: str, right: bool) -> None:
    written = yaml.safe_load(text if text.startswith("site") else f"site: g\n{text}")
    assert jsonschema.Draft7Validator(schema(GROVE)).is_valid(written) is right
