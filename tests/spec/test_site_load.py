"""A site out of files."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

import pytest
from grove import GROVE, only, problems, site

from bfinfra.model.errors import Place, SiteError
from bfinfra.model.refs import Key
from bfinfra.spec.load import load, missing_references

OAK = "site: grove\ntree:\n  oak:\n    label: no\n"


def test_a_site_has_its_name_its_resources_and_its_settings(tmp_path: Path) -> None:
    found = site(
        tmp_path,
        OAK + "vcenter: {server: vc.example}\npepper: {env: PEPPER}\npole: {p: }\n",
        env={"PEPPER": "x"},
    )
    assert (found.name, list(found.resources)) == ("grove", [Key("tree", "oak"), Key("pole", "p")])
    assert found.vcenter
    assert found.vcenter.server == "vc.example"
    assert found.pepper
    assert found.pepper.reveal() == "x"
    assert found.resources[Key("pole", "p")].height == 3


def test_fields_read_their_text(tmp_path: Path) -> None:
    oak = site(
        tmp_path,
        (
            "site: g\ntree: {oak: {label: 1.20, evergreen: yes, device: 0x10de, rings: [1, 2], trunk: "
            "{leaves: 2KiB}, size: 4}}"
        ),
    ).resources[Key("tree", "oak")]
    assert (oak.label, oak.evergreen, oak.device, oak.rings, oak.trunk.leaves, oak.size) == (
        "1.20",
        True,
        0x10DE,
        (1, 2),
        2048,
        4,
    )


def test_several_files_and_folders_make_one_site(tmp_path: Path) -> None:
    found = site(tmp_path, OAK, more="tree: {elm: {near: oak}}\nnest: {n: {tree: elm}}\n", empty="")
    assert list(found.resources) == [Key("tree", "elm"), Key("nest", "n"), Key("tree", "oak")]


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    site(tmp_path, OAK)
    assert len(load([tmp_path, tmp_path / "site.yaml"], kinds=GROVE).files) == 1


def test_the_digest_is_of_what_was_read(tmp_path: Path) -> None:
    found = site(tmp_path, OAK)
    assert found.files == {tmp_path / "site.yaml": hashlib.sha256(OAK.encode()).hexdigest()}


def test_a_resource_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    text = str(problems(tmp_path, OAK, more="tree: {oak: {}}\n")[0])
    assert "tree/oak is defined twice" in text
    assert "site.yaml:3:3" in text
    assert "more.yaml:1:8" in text


def test_the_name_of_the_site_in_two_files_is_an_error(tmp_path: Path) -> None:
    assert "site is defined twice" in str(problems(tmp_path, OAK, more="site: other\n")[0])


def test_a_site_without_a_name_is_refused_with_the_way_to_name_it(tmp_path: Path) -> None:
    assert (
        only(tmp_path, "tree: {oak: {}}\n")
        == "1:1 the site has no name; no file says site:; add site: a-name; every object that bfinfra makes carries it"
    )


@pytest.mark.parametrize("name", ["a b", "[a]", "-a", "", "a/b", "x" * 64])
def test_a_site_name_that_no_label_could_hold_is_refused(tmp_path: Path, name: str) -> None:
    assert "site: expected a name; allowed: letters" in only(tmp_path, f"site: {name}\n")


def test_the_name_of_a_resource_is_as_its_kind_demands(tmp_path: Path) -> None:
    assert only(tmp_path, "site: g\ntree: {Oak_1: {}}\n").startswith(
        "2:8 Oak_1 can't be the name of a tree; allowed: lower-case letters"
    )


def test_names_go_into_marks_so_they_hold_no_blanks(tmp_path: Path) -> None:
    assert "can't be the name of a pole" in only(tmp_path, "site: g\npole: {'a b': {}}\n")


def test_anchors_have_a_home(tmp_path: Path) -> None:
    found = site(tmp_path, "site: g\nx-tree: &t {grows: fast}\ntree: {a: {<<: *t, label: x}, b: *t}\n")
    assert [spec.grows for spec in found.resources.values()] == ["fast", "fast"]


def test_places_lead_to_every_field(tmp_path: Path) -> None:
    found = site(
        tmp_path,
        (
            "site: g\nvcenter:\n  server: v\ntree:\n  oak:\n    branches:\n      a.b:\n        length: 3\n  "
            "  rings: [1, 2]\n"
        ),
    )
    key = Key("tree", "oak")

    def at(field: str, of: Key | None = key) -> tuple[int, int]:
        place = found.place(of, field)
        assert place
        return place.line, place.column

    assert at("") == (5, 3)
    assert at("branches.a.b.length") == (8, 17)
    assert at("branches.a.b.leaves") == (7, 7), "not written: the nearest enclosing piece"
    assert at("rings.1") == (9, 16)
    assert at("grows") == (5, 3)
    assert at("vcenter.server", None) == (3, 11)
    assert found.places[key, "rings"] == Place(tmp_path / "site.yaml", 9, 5, "    rings: [1, 2]")
    assert len(found.places) == len(list(found.places)) == 10


def test_a_place_of_something_unknown_is_none(tmp_path: Path) -> None:
    found = site(tmp_path, OAK)
    assert found.place(Key("tree", "elm"), "x.y") is None
    assert found.place(None, "vcenter.server") is None


def test_references_that_lead_nowhere_are_warnings_until_a_run_needs_them(tmp_path: Path) -> None:
    found = site(
        tmp_path,
        (
            "site: g\nvcenter: {server: v, password: {env: PASSWORD}}\ntree:\n  oak: {key: {file: k}, "
            "picture: p.png, drawing: d}\n"
        ),
    )
    assert [str(w.problem) for w in found.warnings] == [str(p) for p in missing_references(found)]
    assert [p.what for p in missing_references(found)] == [
        "the site: vcenter.password leads nowhere",
        "tree/oak: key leads nowhere",
        "tree/oak: picture leads nowhere",
    ]
    assert str(missing_references(found)[0]).endswith(
        "the environment variable PASSWORD is not set; export PASSWORD=…"
    )
    assert missing_references(found)[1].where == Place(
        tmp_path / "site.yaml", 4, 9, "  oak: {key: {file: k}, picture: p.png, drawing: d}"
    )


def test_paths_are_relative_to_the_folder_of_their_file_and_sample_files_come_first(tmp_path: Path) -> None:
    (tmp_path / "stand_ins").mkdir()
    (tmp_path / "stand_ins" / "b.png").write_text("")
    (tmp_path / "a.png").write_text("")
    found = site(
        tmp_path,
        "site: g\ntree: {a: {picture: a.png}, b: {picture: b.png, drawing: ../d}}\n",
        stand_ins=tmp_path / "stand_ins",
    )
    a, b = found.resources.values()
    assert (a.picture.path, b.picture.path) == (tmp_path / "a.png", tmp_path / "stand_ins" / "b.png")
    assert b.drawing.path == tmp_path / "stand_ins" / "d"
    assert found.warnings == ()


def test_only_the_kinds_in_use_are_asked_for(tmp_path: Path) -> None:
    class Asked(dict):
        def __getitem__(self, name: str) -> object:
            asked.append(name)
            return super().__getitem__(name)

    asked: list[str] = []
    (tmp_path / "s.yaml").write_text(OAK)
    load([tmp_path], kinds=Asked(GROVE))
    assert set(asked) == {"tree"}


def test_a_file_that_is_not_there_is_named_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(OAK)
    with pytest.raises(
        SiteError, match=r"the file can't be read; No such file or directory; did you mean site.yaml"
    ):
        load([tmp_path / "sit.yaml"], kinds=GROVE)


def test_a_file_that_has_no_neighbour_is_named_with_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path / "nosuch.yaml", tmp_path / "nowhere" / "site.yaml"):
        with pytest.raises(
            SiteError,
            match=(r"the file can't be read; No such file or directory; name the site's file, or the folder"),
        ):
            load([path], kinds=GROVE)


def test_a_file_that_must_not_be_read_is_not_taken_for_its_own_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "site.yaml").write_text(OAK)
    monkeypatch.setattr("bfinfra.spec.files.plain_file", refused)
    with pytest.raises(
        SiteError, match=r"the file can't be read; Permission denied; give this user permission to read it"
    ):
        load([tmp_path / "site.yaml"], kinds=GROVE)


def test_a_folder_without_a_site_says_so(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"the folder holds no site file.*; name the site's file"):
        load([tmp_path], kinds=GROVE)


def test_a_file_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"site: g\nx-a: caf\xe9\n")
    with pytest.raises(SiteError, match=r"a.yaml:2:1: the file is not UTF-8 text"):
        load([tmp_path], kinds=GROVE)


def test_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfsite: g\r\npole: {a: }\r\n")
    assert load([tmp_path], kinds=GROVE).name == "g"


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.yaml").open("wb") as stream:
        stream.truncate(1 << 33)
    with pytest.raises(SiteError, match="too large for a site"):
        load([tmp_path], kinds=GROVE)


def test_a_reference_under_a_name_that_a_user_chose_leads_nowhere_as_any_other(tmp_path: Path) -> None:
    found = site(
        tmp_path, "site: g\ntree: {t: {keys: {_leads: {env: A}, _edges: {env: B}, _as_applied: {env: C}}}}\n"
    )
    assert [p.what for p in missing_references(found)] == [
        f"tree/t: keys.{name} leads nowhere" for name in ("_leads", "_edges", "_as_applied")
    ]


def test_what_a_kind_warns_of_is_placed_at_the_field(tmp_path: Path) -> None:
    found = site(tmp_path, "site: g\ntree:\n  oak: {grows: fast, evergreen: true}\n")
    assert [str(w.problem) for w in found.warnings] == [
        f"{tmp_path}/site.yaml:3:33: tree/oak: fast evergreens fall; let it grow slow"
    ]


def test_an_optional_reference_may_name_something_of_somebody_else(tmp_path: Path) -> None:
    assert site(tmp_path, "site: g\ntree: {t: }\nnest: {n: {tree: t, over: elsewhere}}\n").resources


def test_a_home_of_nobody_is_a_file_that_is_not_there(tmp_path: Path) -> None:
    found = site(tmp_path, "site: g\ntree: {t: {picture: ~nobody-there/x, key: {file: ~nobody-there/k}}}\n")
    assert [p.what for p in missing_references(found)] == [
        "tree/t: key leads nowhere",
        "tree/t: picture leads nowhere",
    ]
