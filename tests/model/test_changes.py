"""What differs between a file, what was applied, and the live state."""

from __future__ import annotations

from pydantic import Field

from bfinfra.model.compare import Change, changes
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


def test_of_what_was_never_applied_nothing_is_known_of_before():
    assert Change("power", None, "off") in changes(Machine(cpus=4, power="off"), None)
