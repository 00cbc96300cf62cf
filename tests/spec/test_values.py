"""Values: where they come from, where they go, and what is reported where one is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from variants import message, refused, variant

from bfinfra.model.refs import Key

OAK = Key("tree", "oak")
BASE = """\
site: g
values:
  size: {type: integer}
  name: {default: x, description: What it is called.}
  rings: {type: list, default: [1]}
tree:
  oak: {label: {value: name}, size: {value: size}, rings: {value: rings}}
"""
DECLARED = "; it is declared at site.yaml:"


def one(tmp_path: Path, type_: str, field: str, given: Any = None, default: str = "") -> Any:
    """What a field of the oak is whose value is this."""
    text = f"site: g\nvalues: {{v: {{type: {type_}{default and f', default: {default}'}}}}}\ntree:\n  oak: {{{field}: {{value: v}}}}\n"
    found = variant(tmp_path, text, given={} if given is None else {"v": given})
    return getattr(found.resources[OAK], field)


@pytest.mark.parametrize(
    ("type_", "field", "given", "read"),
    [
        ("string", "label", "a: b", "a: b"),
        ("string", "label", "1.20", "1.20"),
        ("string", "label", 5, "5"),
        ("integer", "size", "5", 5),
        ("integer", "size", 5, 5),
        ("number", "label", "1.5", "1.5"),
        ("boolean", "evergreen", "yes", True),
        ("boolean", "evergreen", True, True),
        ("boolean", "evergreen", False, False),
        ("list", "rings", "[1, 2]", (1, 2)),
        ("list", "rings", [1, 2], (1, 2)),
        ("map", "codes", "{a: 1}", {"a": 1}),
        ("map", "codes", {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_is_of_the_type_that_it_is_declared_with(
    tmp_path: Path, type_: str, field: str, given: Any, read: Any
) -> None:
    assert one(tmp_path, type_, field, given) == read


def test_a_default_is_used_where_nobody_gives_the_value(tmp_path: Path) -> None:
    assert one(tmp_path, "list", "rings", default="[7]") == (7,)


def test_given_values_count_before_files_the_later_file_before_the_earlier_and_all_before_the_default(
    tmp_path: Path,
) -> None:
    found = variant(
        tmp_path,
        BASE,
        values=("size: 1\nname: one\nrings: [3]\n", "size: 2\nname: two\n"),
        given={"name": "three"},
    )
    oak = found.resources[OAK]
    assert (oak.size, oak.label, oak.rings) == (2, "three", (3,))


def test_an_overlay_changes_a_default(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, "values: {size: {default: 4}}\n")
    assert found.resources[OAK].size == 4


def test_a_value_may_be_the_sites_name_an_item_of_a_list_and_a_reference_to_a_secret(tmp_path: Path) -> None:
    text = (
        "site: {value: n}\nvalues: {n: {}, k: {type: map}, r: {type: integer}}\n"
        "tree:\n  oak: {key: {value: k}, keys: {a: {env: {value: n}}}, rings: [1, {value: r}]}\n"
    )
    found = variant(tmp_path, text, given={"n": "prod", "k": {"env": "A"}, "r": 5})
    oak = found.resources[OAK]
    assert (found.name, str(oak.key), str(oak.keys["a"]), oak.rings) == (
        "prod",
        "{env: A}",
        "{env: prod}",
        (1, 5),
    )


def test_a_values_content_is_taken_as_it_is(tmp_path: Path) -> None:
    text = "site: g\nvalues: {m: {type: map, default: {value: 3}}}\ntree:\n  oak: {codes: {value: m}}\n"
    assert variant(tmp_path, text).resources[OAK].codes == {"value": 3}


def test_a_mapping_with_other_keys_beside_value_is_no_reference(tmp_path: Path) -> None:
    text = "site: g\ntree:\n  oak: {codes: {value: 1, other: 2}}\n"
    assert variant(tmp_path, text).resources[OAK].codes == {"value": 1, "other": 2}


def test_a_place_is_where_the_value_came_from(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, values=("name: two\n",), given={"size": "3"})
    assert str(found.place(OAK, "size")) == "--set size"
    at = found.place(OAK, "label")
    assert at is not None
    assert (at.file.name, at.line, at.column) == ("values1.yaml", 1, 7)


def test_a_value_that_nothing_names_is_a_warning(tmp_path: Path) -> None:
    found = variant(tmp_path, "site: g\nvalues: {k: {default: x}}\n")
    assert [message(each.problem) for each in found.warnings] == [
        (
            "site.yaml:2:10 the value k is not used; nothing in the site uses {value: k}; use it, or remove "
            "the declaration"
        )
    ]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (
            {},
            (
                "site.yaml:3:3 the value size is not given; it has no default, and tree/oak: size uses it; "
                "give "
                "it: --set size=…, or a line size: … in a file for --values"
            ),
        ),
        (
            {"given": {"size": "many"}},
            "--set size the value size: expected a whole number; found 'many'" + DECLARED + "3:3",
        ),
        (
            {"given": {"size": "03"}},
            "--set size the value size: expected a whole number without leading zeros; found '03'"
            + DECLARED
            + "3:3",
        ),
        ({"given": {"size": "3", "nam": "y"}}, "--set nam the site has no value nam; did you mean name?"),
        (
            {"given": {"size": "3", "rings": "[4, x]"}},
            "--set rings:1:5 tree/oak: rings.1: expected a whole number; found 'x'",
        ),
        (
            {"given": {"size": "3", "rings": "[4,"}},
            "--set rings:2:1 this is not YAML: did not find expected node content",
        ),
        (
            {"given": {"size": "3", "rings": "4"}},
            "--set rings:1:1 the value rings: expected a list; found '4'" + DECLARED + "5:3",
        ),
        (
            {"given": {"size": "3", "name": ["a"]}},
            "--set name the value name: expected text; found a list" + DECLARED + "4:3",
        ),
        (
            {"values": ("size: 3\nname: \n",)},
            "values1.yaml:2:6 the value name: expected text; found nothing" + DECLARED + "4:3",
        ),
        (
            {"values": ("size: 3\nrings: [x]\n",)},
            "values1.yaml:2:9 tree/oak: rings.0: expected a whole number; found 'x'",
        ),
        (
            {"values": ("size: 3\nnme: b\n",)},
            "values1.yaml:2:1 the site has no value nme; did you mean name?",
        ),
        (
            {"values": ("- 4\n",), "given": {"size": "3"}},
            ("values1.yaml:1:1 expected names, each with its value; found a list; write a-name: its value"),
        ),
    ],
)
def test_what_is_wrong_with_a_given_value_is_reported_where_it_was_given(
    tmp_path: Path, how: dict[str, Any], expected: str
) -> None:
    found = [each.replace(f"{tmp_path}/", "") for each in refused(tmp_path, BASE, **how)]
    assert len(found) == 1
    assert found[0].startswith(expected)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (
            "",
            (
                "3:24 tree/oak: label uses the value name, which the site does not declare; declare it: "
                "values: "
                "{name: {type: string}}"
            ),
        ),
        (
            "{nme: {}}",
            "3:24 tree/oak: label uses the value name, which the site does not declare; did you mean nme?",
        ),
        ("{name: {typ: string}}", "4:17 values.name: there is no field typ; did you mean type?"),
        (
            "{name: {type: text}}",
            (
                "4:23 values.name: type: expected one of string, integer, number, boolean, list, map; "
                "found 'text'"
            ),
        ),
        ("{name: x}", "4:16 values.name: expected fields, each `name: value`; found 'x'"),
        (
            "[name]",
            (
                "4:1 values: expected names, each with its type; found a list; write values: "
                "{a-name: {type: string}}"
            ),
        ),
        (
            "{name: {type: integer, default: x}}",
            "4:41 the value name: expected a whole number; found 'x'; it is declared at site.yaml:4:10",
        ),
        (
            "{name: {}, 1a: {default: x}}",
            "4:20 1a can't be the name of a value; allowed: letters, digits, _ and -, a letter first",
        ),
    ],
)
def test_what_is_wrong_with_a_declaration_is_reported_once(
    tmp_path: Path, declared: str, expected: str
) -> None:
    text = f"site: g\ntree:\n  oak: {{label: {{value: name}}}}\n{declared and f'values: {declared}'}\n"
    found = [each.replace(f"{tmp_path}/", "") for each in refused(tmp_path, text)]
    assert f"site.yaml:{expected}" in found
    assert len(found) == (2 if declared in ("[name]", "{name: {}, 1a: {default: x}}") else 1)


@pytest.mark.parametrize("how", [{"given": {"k": "hunter2-x"}}, {"values": ("k: hunter2-x\n",)}])
def test_a_literal_is_no_secret_also_as_a_value(tmp_path: Path, how: dict[str, Any]) -> None:
    found = refused(tmp_path, "site: g\nvalues: {k: {}}\ntree:\n  oak: {key: {value: k}}\n", **how)
    assert len(found) == 1
    assert (
        "tree/oak: key: write a reference, never the secret itself; write a reference: {env: NAME}"
        in found[0]
    )
    assert "hunter2" not in found[0]


def test_a_value_that_sounds_secret_is_never_repeated(tmp_path: Path) -> None:
    text = "site: g\nvalues: {password: {type: integer}}\ntree:\n  oak: {size: {value: password}}\n"
    found = refused(tmp_path, text, given={"password": "hunter2-x"})
    assert len(found) == 1
    assert found[0].startswith("--set password the value password: expected a whole number; it is declared")
