"""At the end of an apply all that it changed is read once more: what others changed meanwhile is no success."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from engine.toys import IMPATIENT, AtOnce, Box, BoxSpec, Lid, LidSpec, ToyWorld, applied, site

from bfinfra.engine.observe import survey
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.recheck import moved
from bfinfra.engine.reconciler import Reconciler
from bfinfra.model.errors import Busy, Denied, Refusal
from bfinfra.model.kind import LastWriter, Observation
from bfinfra.model.refs import Key

A, B, TOP = Key("box", "a"), Key("box", "b"), Key("lid", "top")
WANTED = site(box__a=BoxSpec(size=2), box__b=BoxSpec(), lid__top=LidSpec(box="a"))


@pytest.fixture
def world() -> ToyWorld:
    """A world in which all that the site says was made."""
    found = ToyWorld()
    applied(found, WANTED)
    found.reads.clear()
    return found


def change(world: ToyWorld, key: Key, **fields: Any) -> None:
    before = world.things[key.kind, key.name]
    world.things[key.kind, key.name] = replace(before, fields={**before.fields, **fields})


def rechecked(
    world: ToyWorld, *changed: Key, destroy: bool = False, kinds: Mapping[str, Any] | None = None
) -> dict[Key, str]:
    """What is told of these after a run that left the world as WANTED, or empty."""
    desired = DesiredState.of(WANTED, destroy=destroy)
    taken = {**world.kinds(), **(kinds or {})}
    observed = survey(ToyWorld().kinds(), desired.wanted, IMPATIENT)
    reconciler = Reconciler(desired, observed, taken, IMPATIENT, lambda _: None)
    found = moved(changed, desired.wanted, observed, taken, reconciler, IMPATIENT)
    return {key: str(problem) for key, problem in found.items()}


def test_what_is_as_the_run_left_it_is_well_after_one_read_a_kind(world: ToyWorld) -> None:
    assert rechecked(world, A, B, TOP) == {}
    assert sorted(world.reads) == [("box", False), ("lid", False)]


def test_without_a_change_nothing_is_read(world: ToyWorld) -> None:
    assert rechecked(world) == {}
    assert world.reads == []


def test_each_field_that_somebody_changed_is_told_with_both_values(world: ToyWorld) -> None:
    change(world, A, size=4, paint="blue")
    assert rechecked(world, A, B, TOP) == {
        A: "box/a was changed while this ran; paint: (none) → blue; size: 2 → 4; "
        "see who else changes it, then apply again"
    }


def test_what_this_run_did_not_change_is_not_its_matter(world: ToyWorld) -> None:
    change(world, A, size=4)
    assert rechecked(world, B, TOP) == {}


def test_what_was_made_and_is_gone_is_told(world: ToyWorld) -> None:
    del world.things["box", "b"]
    assert "it was created, and is gone" in rechecked(world, A, B)[B]


def test_what_was_deleted_and_exists_again_is_told(world: ToyWorld) -> None:
    assert "it was deleted, and exists again" in rechecked(world, B, destroy=True)[B]
    world.things.clear()
    assert rechecked(world, A, B, destroy=True) == {}


def test_a_change_without_fields_is_told_by_its_step(
    world: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Box.steps
    monkeypatch.setattr(
        Box, "steps", staticmethod(lambda *given: tuple(replace(each, changes=()) for each in steps(*given)))
    )
    world.things["box", "b"] = replace(world.things["box", "b"], fields={"material": "steel"})
    assert "it needs: burn b to make it of something else; it needs: make b" in rechecked(world, B)[B]


class Guarded(Box):
    """Boxes whose server knows who wrote what."""

    asked: Mapping[str, tuple[object, tuple[str, ...]]]
    by: Mapping[str, LastWriter]
    error: Exception | None = None

    def audit(self, found: Any) -> Any:
        self.asked = found
        if self.error:
            raise self.error
        return dict.fromkeys(found, self.by)


def test_who_changed_it_is_named_once_where_the_server_knows(world: ToyWorld) -> None:
    change(world, A, size=4, paint="blue")
    boxes = Guarded(world)
    boxes.by = dict.fromkeys(("paint", "size"), LastWriter("alice")) | {"x": LastWriter("")}
    assert "size: 2 → 4; by alice; see" in rechecked(world, A, kinds={"box": boxes})[A]
    assert boxes.asked["a"][1] == ("paint", "size")


def test_who_deleted_it_is_asked_of_the_object_as_a_whole(world: ToyWorld) -> None:
    del world.things["box", "a"]
    boxes = Guarded(world)
    boxes.by = {"": LastWriter("bob")}
    assert "is gone; by bob" in rechecked(world, A, kinds={"box": boxes})[A]
    assert boxes.asked["a"] == (None, ("",))


def test_a_server_that_does_not_tell_who_changed_it_spoils_nothing(world: ToyWorld) -> None:
    change(world, A, size=4)
    boxes = Guarded(world)
    boxes.error = Denied("no right to read events")
    assert "size: 2 → 4; see who" in rechecked(world, A, kinds={"box": boxes})[A]


def test_what_can_not_be_read_once_more_is_no_success_and_of_no_other_kind(world: ToyWorld) -> None:
    world.unreadable = {"": "the line is dead"}
    found = rechecked(world, A, B, TOP)
    assert found.keys() == {A, B}
    assert found[A] == (
        "box/a can't be read once more; box can't be read; the line is dead; check that the server runs and can "
        "be reached, then run this again; check it later with: bfinfra drift SITE"
    )


def test_a_busy_server_is_asked_again(world: ToyWorld) -> None:
    class BusyOnce(Box):
        left = 1

        def observe(self, *given: Any, **options: Any) -> Observation:
            if self.left:
                self.left -= 1
                raise Busy("come back later")
            return super().observe(*given, **options)

    assert rechecked(world, A, kinds={"box": BusyOnce(world)}) == {}


def test_what_is_refused_by_now_is_told_in_the_words_of_its_refusal(
    world: ToyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Any:
        raise Refusal("no box may stand there", next="move it")

    monkeypatch.setattr(Box, "steps", staticmethod(refuse))
    assert rechecked(world, A, TOP) == {A: "no box may stand there; move it"}


def test_kinds_are_read_side_by_side(world: ToyWorld) -> None:
    together = threading.Barrier(2, timeout=60)

    class Together(Box):
        def observe(self, *given: Any, **options: Any) -> Observation:
            together.wait()
            return super().observe(*given, **options)

    class Lids(Lid):
        def observe(self, *given: Any, **options: Any) -> Observation:
            together.wait()
            return super().observe(*given, **options)

    assert rechecked(world, A, TOP, kinds={"box": Together(world), "lid": Lids(world)}) == {}


def test_four_kinds_are_read_at_once_and_no_more(world: ToyWorld) -> None:
    readers = AtOnce(4)

    class Slow(Box):
        def observe(self, *given: Any, **options: Any) -> Observation:
            readers.passing()
            return Observation({})

    kinds = {f"box{number}": Slow(world) for number in range(8)}
    rechecked(world, *(Key(kind, "a") for kind in kinds), kinds=kinds)
    assert readers.most == 4
