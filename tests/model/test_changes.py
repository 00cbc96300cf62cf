"""What differs between a file, what was applied, and the live state."""

from __future__ import annotations

import pytest
from pydantic import Field

from bfinfra.model import compare
from bfinfra.model.compare import Change, changes
from bfinfra.model.defaults import default_of
from bfinfra.model.mark import Mark
from bfinfra.model.resource import Part, Spec


class Disk(Part):
    size: int = 40
    note: str | None = None


class Machine(Spec):
    power: str = "on"
    disk: Disk = Field(default_factory=Disk)
    note: str | None = None
    cpus: int


def changes_of(applied: dict[str, object], **written: object) -> set[tuple[str, object, object]]:
    found = changes(
        Machine.model_validate({"cpus": 4, **written}),
        Mark("s", "machine/m").committed({"cpus": 4, **applied}),
    )
    return {(change.field, change.now, change.wanted) for change in found}


def test_what_a_file_no_longer_says_is_the_default_again():
    assert changes_of({"power": "off", "disk": {"size": 80}}) == {
        ("power", "off", "on"),
        ("disk.size", 80, 40),
    }


def test_what_a_file_says_for_the_first_time_was_the_default_before():
    assert changes_of({}, power="off", disk={"size": 80}) == {("power", "on", "off"), ("disk.size", 40, 80)}


def test_what_has_no_default_is_none():
    assert changes_of({"note": "a", "disk": {"note": "b"}}) == {("note", "a", None), ("disk.note", "b", None)}


def test_what_a_file_says_anew_is_what_it_says():
    assert changes_of({"power": "off"}, power="paused") == {("power", "off", "paused")}


def test_work_that_was_not_finished_is_a_change_that_names_whose_it_is():
    assert changes(Machine(cpus=4), Mark("s", "machine/m")) == (Change("mark", None, "machine/m of s"),)


def test_of_what_was_never_applied_nothing_is_known_of_before():
    assert Change("power", None, "off") in changes(Machine(cpus=4, power="off"), None)


class Rack(Spec):
    label: str = Field(default_factory=lambda: "made")
    disk: Disk | None = Disk()
    spare: Disk | None = None
    notes: dict[str, str] = {}  # noqa: RUF012 - pydantic copies it
    size: int


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("label", "made"),
        ("size", None),
        ("disk", None),
        ("disk.size", 40),
        ("spare.size", 40),
        ("notes", None),
        ("notes.a", None),
        ("nothing", None),
        ("nothing.size", None),
    ],
)
def test_a_default_is_found_at_its_path_whatever_the_file_says(path, default):
    assert default_of(Rack(size=1, disk=None, spare=Disk(size=80), notes={"a": "b"}), path) == default


class Sized(Part):
    cpu: int | None = None
    memory: int | None = None


class Space(Spec):
    limits: Sized = Sized()
    access: tuple[str, ...] = ()
    description: str = ""


NOW = {"limits": {"cpu": 1, "memory": 2}, "access": ["a", "b"], "description": "by hand"}
DEFAULTS = {"limits": {"cpu": None, "memory": None}, "access": [], "description": ""}


@pytest.mark.parametrize(
    ("said", "applied", "found"),
    [
        ({}, None, set()),
        ({"limits": {}}, {}, set()),
        ({"limits": {"cpu": 4}}, {}, {"limits.cpu"}),
        ({"limits": {"memory": None}}, {}, {"limits.memory"}),
        ({"access": []}, {}, {"access"}),
        ({}, {"access": ["a"], "limits": {"memory": 2}}, {"access", "limits.memory"}),
        ({}, {"access": ["a"], "field of an earlier release": 1}, {"access"}),
        ({"limits": {"cpu": 4}}, {"limits": {"cpu": 1, "memory": 2}}, {"limits.cpu", "limits.memory"}),
    ],
)
def test_only_what_the_file_says_or_said_is_compared(said, applied, found):
    spec, mark = Space.model_validate(said), Mark("example", "space/a", applied)
    wanted = {**DEFAULTS, **spec.model_dump(mode="json")}
    changes = compare.drift(spec, mark, NOW, wanted)
    assert {each.field for each in changes} == found
    assert all(compare.touches(changes, field) for field in found)
    assert all(compare.touches(changes, field.partition(".")[0]) for field in found)
    assert not compare.touches(changes, "description")


def test_a_description_that_the_file_leaves_out_stays_above_the_mark():
    mark, spec = Mark("example", "space/a", {}), Space(description="ours")
    assert compare.description(Space(), "by hand\nbfinfra:1 site=x address=y/z", mark, None).startswith(
        "by hand\nbf"
    )
    assert compare.description(spec, "by hand", mark, None).startswith("ours\nbfinfra:1")
    assert (
        compare.description(Space(), "ours", mark, mark.committed({"description": "ours"})) == mark.encode()
    )
    assert compare.description(spec, None, mark, None).startswith("ours\n")


def test_an_object_that_is_adopted_gets_its_mark_and_keeps_the_rest():
    spec = Space(access=("c",))
    for adopting, found in ((True, []), (False, ["access"])):
        drift = compare.drift(
            spec, Mark("example", "space/a", adopting=adopting), NOW, spec.model_dump(mode="json")
        )
        assert [each.field for each in drift] == found


def test_a_change_of_a_whole_touches_each_part_of_it():
    assert compare.touches([Change("limits", None, {"cpu": 1})], "limits.cpu")
    assert not compare.touches([Change("limits", None, {"cpu": 1})], "limitless")


def test_what_has_no_description_in_the_file_gets_the_mark_alone():
    mark = Mark("s", "machine/m")
    assert compare.description(Machine(cpus=4), None, mark, None) == mark.encode()
