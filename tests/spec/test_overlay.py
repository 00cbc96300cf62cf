"""Overlays: what they replace, what they remove, where their errors stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from grove import GROVE
from variants import message, refused, variant

from bfinfra.model.errors import SiteError
from bfinfra.model.refs import Key
from bfinfra.model.variant import Variant
from bfinfra.spec.load import load

OAK, ELM = Key("tree", "oak"), Key("tree", "elm")
BASE = """\
site: g
tree:
  oak: {label: a, branches: {l: {length: 2}, r: {}}, rings: [1, 2]}
  elm: {}
"""


def test_an_overlay_is_merged_field_by_field_and_lists_are_replaced(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, "tree:\n  oak: {branches: {l: {leaves: 3MiB}}, rings: [4]}\n")
    oak = found.resources[OAK]
    assert (oak.label, oak.branches["l"].length, oak.branches["l"].leaves) == ("a", 2, 3 << 20)
    assert (list(oak.branches), oak.rings) == (["l", "r"], (4,))


def test_the_later_overlay_counts(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, "tree: {oak: {label: b, grows: fast}}\n", "tree: {oak: {label: c}}\n")
    assert (found.resources[OAK].label, found.resources[OAK].grows) == ("c", "fast")


def test_null_removes_a_field_and_a_resource(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, "tree:\n  oak: {label: null, branches: {r: null}}\n  elm: null\n")
    assert found.resources.keys() == {OAK}
    assert (found.resources[OAK].label, list(found.resources[OAK].branches)) == ("", ["l"])


def test_an_overlay_adds_resources_and_names_the_site(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, "site: prod\ntree:\n  ash: {label: new}\n  fir: {}\n")
    assert (found.name, [key.name for key in found.resources]) == ("prod", ["oak", "elm", "ash", "fir"])


def test_one_reference_replaces_another(tmp_path: Path) -> None:
    text = "site: g\ntree:\n  oak: {key: {env: A}, keys: {b: {env: B}}}\n"
    found = variant(tmp_path, text, "tree:\n  oak: {key: {keyring: a/b}, keys: {b: {command: [c]}}}\n")
    assert str(found.resources[OAK].key) == "{keyring: a/b}"
    assert str(found.resources[OAK].keys["b"]) == "{command: ['c']}"


def test_paths_in_an_overlay_begin_at_the_sites_folder(tmp_path: Path) -> None:
    (tmp_path / "overlays").mkdir()
    (tmp_path / "site.yaml").write_text(BASE)
    over = tmp_path / "overlays/prod.yaml"
    over.write_text("tree:\n  oak: {picture: a.png}\n  ash: {picture: b.png}\n")
    found = load([tmp_path / "site.yaml"], variant=Variant((over,)), env={}, kinds=GROVE)
    pictures = [found.resources[Key("tree", name)].picture for name in ("oak", "ash")]
    assert [each.path for each in pictures if each] == [tmp_path / "a.png", tmp_path / "b.png"]


def test_a_place_is_that_of_the_file_that_the_value_came_from(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, "tree:\n  oak:\n    rings: [4]\n")
    places = {field: found.place(OAK, field) for field in ("", "label", "rings", "rings.0", "rings.1")}
    assert {
        field: f"{at.file.name}:{at.line}:{at.column}" for field, at in places.items() if at is not None
    } == {
        "": "site.yaml:3:3",
        "label": "site.yaml:3:16",
        "rings": "over1.yaml:3:5",
        "rings.0": "over1.yaml:3:13",
        "rings.1": "over1.yaml:3:5",
    }


def test_the_digests_are_of_every_file_that_was_read(tmp_path: Path) -> None:
    found = variant(tmp_path, BASE, "tree: {oak: {label: b}}\n")
    assert [file.name for file in found.files] == ["site.yaml"]
    assert [file.name for file in found.variant_files] == ["over1.yaml"]


def test_a_number_with_leading_zeros_is_refused_in_an_overlay_as_well(tmp_path: Path) -> None:
    assert refused(tmp_path, BASE, "tree:\n  oak: {rings: [010]}\n") == [
        (
            "over1.yaml:2:17 tree/oak: rings.0: expected a number without leading zeros; found 010, which "
            "YAML 1.1 reads as octal, and YAML 1.2 does not; write 10 if you mean that"
        )
    ]


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        (
            "tree:\n  ok: \n",
            (
                "over1.yaml:2:3 tree/ok does not exist, and can't be removed; an overlay removes a field or "
                "resource that it sets to null; did "
                "you mean tree/oak?; to add it without fields, write {}"
            ),
        ),
        (
            "tree:\n  oak: {labl: }\n",
            (
                "over1.yaml:2:9 tree/oak: labl does not exist, and can't be removed; an overlay removes a "
                "field or resource that it sets to null; did you mean label?"
            ),
        ),
        (
            "tree:\n  oak: {branches: {x: }}\n",
            (
                "over1.yaml:2:20 tree/oak: branches.x does not exist, and can't be removed; an overlay "
                "removes a field or resource that it sets to null; there are: l, r"
            ),
        ),
        (
            "tree:\n  oak: {rings: [x]}\n",
            "over1.yaml:2:17 tree/oak: rings.0: expected a whole number; found 'x'",
        ),
        ("tree:\n  oak: {labl: x}\n", "over1.yaml:2:9 tree/oak: there is no field labl; did you mean label?"),
        (
            "tree:\n",
            (
                "over1.yaml:1:1 tree: expected names, each with its fields; found nothing; "
                "remove resources one by one: tree: {a-name: null}"
            ),
        ),
        ("tre:\n  oak: {}\n", "over1.yaml:1:1 there is no kind tre; did you mean tree?"),
        ("- a\n", "over1.yaml:1:1 a site file begins with keys such as site: and vcenter:; found a list"),
        ("tree: [\n", "over1.yaml:2:1 this is not YAML: did not find expected node content"),
        (
            "tree:\n  oak: {near: ash}\n",
            "over1.yaml:2:15 tree/oak: near names ash, and there is no such tree",
        ),
    ],
)
def test_what_is_wrong_in_an_overlay_is_reported_at_its_place(
    tmp_path: Path, overlay: str, expected: str
) -> None:
    found = refused(tmp_path, BASE, overlay)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_what_is_removed_and_still_named_is_reported_where_it_is_named(tmp_path: Path) -> None:
    text = f"{BASE}nest:\n  a: {{tree: oak}}\n"
    assert refused(tmp_path, text, "tree:\n  oak: null\n") == [
        "site.yaml:6:13 nest/a: tree names oak, and there is no such tree or pole; there are: elm"
    ]


def test_an_overlay_in_the_sites_own_folder_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("site: g\n")
    (tmp_path / "prod.yaml").write_text("pepper: {env: A}\n")
    with pytest.raises(SiteError) as caught:
        load([tmp_path], variant=Variant((tmp_path / "prod.yaml",)), kinds={})
    assert message(caught.value.problems[0]) == (
        f"{tmp_path}/prod.yaml the overlay is also a file of the site; every YAML file directly in a folder "
        f"belongs to its site; put overlays into their own folder, such as overlays/"
    )
