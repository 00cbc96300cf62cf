"""What an operator reads when a site is wrong: what, where, why, what next; never pydantic's own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from grove import only, problems

from bfinfra.model.errors import Place

EXPLAIN = re.compile(r"; bfinfra explain (tree|nest)\.[a-z]+ describes it$")
TREE = "site: g\ntree:\n  oak: "


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{grow: fast}", "3:9 tree/oak: there is no field grow; did you mean grows?"),
        ("{length: 3}", "3:9 tree/oak: there is no field length; did you mean branches.length?"),
        ("{trunk: {lenght: 3}}", "3:17 tree/oak: there is no field trunk.lenght; did you mean length?"),
        (
            "{branches: {a: {lenght: 3}}}",
            "3:24 tree/oak: there is no field branches.a.lenght; did you mean length?",
        ),
        (
            "{grows: fats}",
            "3:16 tree/oak: grows: expected one of fast, slow; found 'fats'; did you mean fast?",
        ),
        ("{evergreen: perhaps}", "3:20 tree/oak: evergreen: expected true or false; found 'perhaps'"),
        ("{trunk: {length: tall}}", "3:25 tree/oak: trunk.length: expected a whole number; found 'tall'"),
        ("{trunk: {length: 12}}", "3:25 tree/oak: trunk.length: expected 9 or less; found '12'"),
        ("{trunk: 3}", "3:16 tree/oak: trunk: expected fields, each `name: value`; found '3'"),
        ("{trunk: }", "3:16 tree/oak: trunk: expected fields, each `name: value`; found nothing"),
        ("{rings: 3}", "3:16 tree/oak: rings: expected a list; found '3'"),
        ("{rings: [1, x]}", "3:20 tree/oak: rings.1: expected a whole number; found 'x'"),
        ("{branches: [a]}", "3:9 tree/oak: branches: expected fields, each `name: value`; found a list"),
        ("{label: {a: b}}", "3:9 tree/oak: label: expected text; found fields"),
        ("{label: }", "3:16 tree/oak: label: expected text; found nothing"),
        ("{size: tall}", "3:15 tree/oak: size: expected a whole number or one of any; found 'tall'"),
        (
            "{trunk: {leaves: many}}",
            (
                "3:25 tree/oak: trunk.leaves: expected a quantity such as 128GiB (units: B, KiB, MiB, GiB, "
                "TiB, PiB, Ki, Mi, Gi, Ti, KB, MB, GB, TB)"
            ),
        ),
        ("{device: nvidia}", "3:17 tree/oak: device: expected a PCI id in hexadecimal, such as 0x10de"),
        (
            "{key: {enc: X}}",
            (
                "3:9 tree/oak: key: expected exactly one of {env: NAME}, {file: path}, {command: [argv]}, "
                "{keyring: service/user}"
            ),
        ),
        (
            "{code: A1}",
            (
                "3:15 tree/oak: code: expected text of the form ^[a-z]+$; found 'A1'; Lower-case "
                "letters, such as oak."
            ),
        ),
        (
            "{codes: {A1: 2}}",
            (
                "3:17 tree/oak: codes.A1: expected text of the form ^[a-z]+$; found 'A1'; Codes as "
                "lower-case letters → how many."
            ),
        ),
        (
            "{trunk: {length: 03}}",
            (
                "3:25 tree/oak: trunk.length: expected a number without leading zeros; found 03, "
                "which YAML 1.1 reads as octal, and YAML 1.2 does not; write 3 if you mean that"
            ),
        ),
        (
            "{rings: [1, 010]}",
            (
                "3:20 tree/oak: rings.1: expected a number without leading zeros; found 010, which "
                "YAML 1.1 reads as octal, and YAML 1.2 does not; write 10 if you mean that"
            ),
        ),
        (
            "{rings: [1, -010]}",
            (
                "3:20 tree/oak: rings.1: expected a number without leading zeros; found -010, which "
                "YAML 1.1 reads as octal, and YAML 1.2 does not; write -10 if you mean that"
            ),
        ),
        ("[a]", "3:3 tree/oak: expected fields, each `name: value`; found a list"),
    ],
)
def test_a_wrong_field_is_explained_at_its_place(tmp_path: Path, written: str, message: str) -> None:
    assert EXPLAIN.sub("", only(tmp_path, TREE + written + "\n")) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("site: g\ntre: {}\n", "2:1 there is no kind tre; did you mean tree?"),
        ("site: g\nvcentre: {}\n", "2:1 there is no kind vcentre; did you mean vcenter?"),
        (
            "site: g\nvcenter: {}\n",
            "2:1 vcenter.server is missing; write it, or set BFINFRA_VCENTER_SERVER or GOVC_URL",
        ),
        (
            "site: g\nvcenter: {server: 'https://vc.example/ui'}\n",
            "2:19 vcenter: server: write host or host:port, without a scheme, a user or a path",
        ),
        ("site: g\nnest: {n: {}}\n", "2:8 nest/n: tree is missing"),
        (
            "site: g\ntree: [oak]\n",
            ("2:1 tree: expected names, each with its fields; found a list; write tree: {a-name: {…}}"),
        ),
        (
            "site: g\nvcenter: {server: v, trust: {sha256: xyz}}\n",
            (
                "2:38 vcenter: trust.sha256: expected a SHA-256 fingerprint: 64 hexadecimal digits, colons "
                "allowed"
            ),
        ),
        (
            "site: g\nvcenter: {server: v, trust: {sha256: x, ca_file: y}}\n",
            "2:38 vcenter: trust.sha256: give ca_file or sha256, not both",
        ),
    ],
)
def test_a_wrong_file_is_explained_at_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert EXPLAIN.sub("", only(tmp_path, text)) == message


@pytest.mark.parametrize(
    ("written", "field"),
    [("{evergreen: perhaps}", "evergreen"), ("{trunk: {length: 12}}", "trunk"), ("{rings: [1, x]}", "rings")],
)
def test_a_wrong_field_without_better_advice_names_the_command_that_describes_it(
    tmp_path: Path, written: str, field: str
) -> None:
    (problem,) = problems(tmp_path, TREE + written + "\n")
    assert problem.next == f"bfinfra explain tree.{field} describes it"


def test_a_reference_with_its_kind_is_to_be_written_without_it(tmp_path: Path) -> None:
    assert only(tmp_path, "site: g\nnest: {n: {tree: tree/oak}}\ntree: {oak: {}}\n").endswith(
        "write the name without its kind: oak"
    )


def test_a_list_is_no_site(tmp_path: Path) -> None:
    assert any("begins with keys such as site:" in str(p) for p in problems(tmp_path, "- a\n"))


def test_a_manifest_among_the_files_is_recognised(tmp_path: Path) -> None:
    found = problems(tmp_path, "site: g\n", pod="apiVersion: v1\nkind: Pod\n")
    assert all("belongs to a Kubernetes manifest" in str(p) for p in found)


def test_all_problems_of_all_files_are_reported_at_once_in_reading_order(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        "site: g\ntree: {a: {grow: 1}, b: {size: x, near: nobody}, c: {near: nobody}}\nbush: {}\n",
        a="tree: {d: {rings: x}}\n",
        b="tree: [\n",
        c="nest: {n: {tree: a, tree: b}}\n",
    )
    assert [(p.where.file.name, p.where.line) for p in found if not isinstance(p.where, str)] == [
        ("a.yaml", 1),
        ("b.yaml", 2),
        ("c.yaml", 1),
        ("site.yaml", 2),
        ("site.yaml", 2),
        ("site.yaml", 2),
        ("site.yaml", 3),
    ]


def test_a_literal_secret_is_refused_and_never_shown(tmp_path: Path) -> None:
    found = problems(tmp_path, TREE + "{key: hunter2}\nvcenter: {server: v, password: hunter2}\n")
    assert len(found) == 2
    assert all("write a reference, never the secret itself; write a reference" in str(p) for p in found)
    assert "hunter2" not in repr(found)


def test_a_literal_secret_beside_another_mistake_is_not_shown_either(tmp_path: Path) -> None:
    assert "hunter2" not in repr(
        problems(tmp_path, "site: g\nvcenter: {server: v, pasword: hunter2, password: hunter2, x: 1}\n")
    )


def test_a_dangling_reference_names_the_nearest(tmp_path: Path) -> None:
    text = "site: g\ntree: {oak: }\nnest: {n: {tree: aok}}\n"
    assert (
        only(tmp_path, text)
        == "3:18 nest/n: tree names aok, and there is no such tree or pole; did you mean oak?"
    )


def test_a_dangling_reference_without_anything_near_says_what_to_add(tmp_path: Path) -> None:
    assert only(tmp_path, "site: g\nnest: {n: {tree: x}}\n").endswith(
        "no such tree or pole; add tree: {x: …}"
    )


def test_a_reference_to_the_wrong_kind_says_what_it_names(tmp_path: Path) -> None:
    text = "site: g\npole: {p: }\nnest: {n: {tree: p}}\ntree: {oak: {near: p}}\n"
    assert (
        only(tmp_path, text)
        == "4:20 tree/oak: near names p, which is a pole; expected the name of a tree; there are: oak"
    )


def test_a_name_of_two_kinds_is_ambiguous_where_either_is_allowed(tmp_path: Path) -> None:
    assert "could be tree/p or pole/p" in only(
        tmp_path, "site: g\npole: {p: }\ntree: {p: }\nnest: {n: {tree: p}}\n"
    )


def test_a_reference_to_something_invalid_is_no_second_problem(tmp_path: Path) -> None:
    assert "grow" in only(tmp_path, "site: g\ntree: {oak: {grow: 1}}\nnest: {n: {tree: oak}}\n")


def test_a_circle_is_named_by_its_path(tmp_path: Path) -> None:
    text = "site: g\ntree:\n  a: {near: b}\n  b: {near: c}\n  c: {near: a}\n  d: {near: a}\n"
    assert only(tmp_path, text) == (
        "3:13 tree/a → tree/b → tree/c → tree/a: these name each other in a cycle; "
        "none of them could be created first; remove one of the references"
    )


def test_each_circle_is_a_problem_of_its_own_and_so_is_a_name_for_itself(tmp_path: Path) -> None:
    found = problems(tmp_path, "site: g\ntree: {a: {near: b}, b: {near: a}, c: {near: c}}\n")
    assert len(found) == 2
    assert any("tree/c → tree/c: these name each other" in str(p) for p in found)


def test_an_overlong_value_is_cut_in_the_message(tmp_path: Path) -> None:
    assert len(only(tmp_path, TREE + f"{{size: {'x' * 5000}}}\n")) < 200


def test_the_line_is_shown_around_a_mistake_however_far_right_it_is(tmp_path: Path) -> None:
    many = ", ".join(f"{name * 20}: 1" for name in "abcdefghij")
    (problem,) = problems(tmp_path, f"site: g\ntree: {{oak: {{codes: {{{many}}}, lenght: 3}}}}\n")
    assert isinstance(problem.where, Place)
    assert problem.where.text[problem.where.column - 1 :].startswith("lenght: 3")
