"""A target narrows a plan to a resource and what must be done before it; an adoption, to what it marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from engine.toys import Box, BoxSpec, LidSpec, ToyState, ToyWorld, applied, lines, planned, site

from bfinfra.engine import target
from bfinfra.engine.observe import ObservedState
from bfinfra.model.compare import UNFINISHED, Change
from bfinfra.model.errors import BfinfraError, Place, Problem, Warned
from bfinfra.model.kind import Source
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.step import Step

A, B, TOP = Key("box", "a"), Key("box", "b"), Key("lid", "top")


def both(**more: Any) -> Site:
    return site(lid__top=LidSpec(box="a"), box__a=BoxSpec(), box__b=BoxSpec(), **more)


def test_what_is_made_brings_what_it_needs_along() -> None:
    plan = planned(ToyWorld(), both(), targets=(TOP,))
    assert lines(plan) == ["create box/a: make a", "create lid/top: make top"]
    assert plan.partial is not None
    assert (plan.partial.targets, plan.partial.left_out) == ((TOP,), 1)
    assert set(plan.partial.keys) == {A, TOP}


def test_what_needs_it_is_left_out() -> None:
    assert lines(planned(ToyWorld(), both(), targets=(A,))) == ["create box/a: make a"]


def test_several_targets_are_one_part() -> None:
    plan = planned(ToyWorld(), both(), targets=(B, TOP, B))
    assert [str(item.key) for item in plan.items] == ["box/a", "box/b", "lid/top"]
    assert plan.partial is not None
    assert (plan.partial.targets, plan.partial.left_out) == ((B, TOP), 0)


def test_what_goes_takes_along_what_needs_it() -> None:
    world = ToyWorld()
    applied(world, both())
    assert lines(planned(world, both(), destroy=True, targets=(A,))) == [
        "delete lid/top: burn top",
        "delete box/a: burn a",
    ]
    assert lines(planned(world, both(), destroy=True, targets=(TOP,))) == ["delete lid/top: burn top"]


def test_what_left_the_file_may_be_a_target() -> None:
    world = ToyWorld()
    applied(world, both())
    assert lines(planned(world, site(box__a=BoxSpec()), targets=(B,))) == ["delete box/b: burn b"]


def test_what_is_wrong_with_others_is_no_matter() -> None:
    world = ToyWorld(unreadable={"b": "its shelf does not answer"})
    plan = planned(world, both(box__c=BoxSpec(size=10)), targets=(TOP,))
    assert (plan.problems, plan.unreadable) == ((), {})
    assert [str(item.key) for item in plan.items] == ["box/a", "lid/top"]


def test_what_is_wrong_with_what_a_target_needs_is_reported() -> None:
    world = ToyWorld(unreadable={"a": "its shelf does not answer"})
    plan = planned(world, both(), targets=(TOP,))
    assert plan.unreadable == {"box/a": "its shelf does not answer", "lid/top": "its shelf does not answer"}


def test_a_plan_without_targets_is_of_all() -> None:
    assert planned(ToyWorld(), both()).partial is None


def test_a_target_that_there_is_not_is_answered_with_the_nearest() -> None:
    with pytest.raises(BfinfraError) as caught:
        planned(ToyWorld(), both(), targets=(Key("lid", "tap"), TOP))
    assert str(caught.value) == (
        "--target: there is no lid/tap to target; the site does not have it, and no object has the site's "
        "mark for it; did you mean lid/top?"
    )


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        (Key("lid", "zzz"), "there are: lid/top"),  # of the same kind, where there are any
        (Key("shelf", "zzz"), "there are: box/a, box/b, lid/top"),
    ],
)
def test_a_target_that_is_like_nothing_is_answered_with_what_there_is(tried: Key, words: str) -> None:
    with pytest.raises(BfinfraError) as caught:
        planned(ToyWorld(), both(), targets=(tried,))
    assert caught.value.problems[0].next == words


# Which kinds have to be surveyed for it.


def needed(*targets: Key, named: Mapping[str, Collection[str]] = MappingProxyType({})) -> set[str] | None:
    wanted = both(shelf__s=BoxSpec()).resources
    found = target.kinds_needed(targets, wanted, lambda kind: named.get(kind, ()))
    return None if found is None else {*found}


def test_a_survey_for_a_target_reads_its_kind_and_those_of_what_it_needs() -> None:
    assert needed(TOP) == {"lid", "box"}
    assert needed(A) == {"box"}


def test_a_survey_for_a_target_reads_what_its_kinds_look_at_and_these_in_turn() -> None:
    looks = {"lid": ("shelf",), "shelf": ("lid", "wardrobe")}
    assert needed(TOP, named=looks) == {"lid", "box", "shelf"}, "no wardrobe is in the site"
    assert needed(A, named=looks) == {"box"}


def test_without_a_target_and_for_what_is_to_be_deleted_all_kinds_are_read() -> None:
    assert needed() is None
    assert needed(Key("box", "gone"), A) is None


# What is left of a plan.

PAINT = Step(changes=(Change("paint", None, "blue"),))


def whole(**more: Any) -> Plan:
    return Plan(
        "toys",
        (
            Item(A, Action.UPDATE, (PAINT,), waits_for=(B,), because={B: "it stands on it"}),
            Item(B, Action.UPDATE, (PAINT,)),
        ),
        **more,
    )


def test_only_some_of_a_plan_are_its_items_without_what_they_wait_for() -> None:
    found = target.only(whole(warnings=(Warned(Problem("of all")),), stale={"box/b": "lost"}), frozenset({A}))
    assert found.items == (Item(A, Action.UPDATE, (PAINT,)),)
    assert (found.warnings, found.stale) == ((), {})


def test_only_some_of_a_plan_keep_their_own_problems() -> None:
    mine, longer = Problem("box/a: no box is that large"), Problem("box/ab: nor that")
    found = target.only(whole(problems=(mine, longer, Problem("box/b: too small"))), frozenset({A}))
    assert found.problems == (mine,)


def test_only_some_of_a_plan_keep_what_can_not_be_read_of_them_and_of_the_clusters_that_hold_them() -> None:
    blind = {"box/a": "dark", "box/b": "dark", "shelf": "away", "shelf/s": "away", "lid": "lost"}
    assert target.only(whole(unreadable=blind), frozenset({A})).unreadable == {"box/a": "dark"}
    found = target.only(whole(unreadable=blind), frozenset({A}), places=("shelf",))
    assert found.unreadable == {"box/a": "dark", "shelf": "away", "shelf/s": "away"}


# Adoptions.


class Setting(Box):
    """What exists anyway, such as a host."""

    managed = False


class Book(Source[BoxSpec, ToyState]):
    """What is only read."""

    def observe(self, *_: object, **__: object) -> Any:
        raise AssertionError("nothing is read here")


BOOK, HOST = Key("book", "b"), Key("setting", "h")
KINDS: dict[str, Any] = {"box": Box(ToyWorld()), "setting": Setting(ToyWorld()), "book": Book()}
NOBODYS, OURS = ToyState(fields={}), ToyState(fields={}, mark=Mark("toys", "box/b"))


def test_an_adoption_of_all_takes_what_bears_no_mark() -> None:
    observed = ObservedState(states={A: NOBODYS, B: OURS, BOOK: NOBODYS, HOST: NOBODYS})
    assert target.unmarked(whole(), observed, KINDS) == {A, HOST}


@pytest.mark.parametrize(("field", "taken"), [("paint", False), (UNFINISHED, True)])
def test_an_adoption_of_all_takes_no_setting_that_differs(field: str, taken: bool) -> None:
    differs = Plan("toys", (Item(HOST, Action.UPDATE, (Step(changes=(Change(field, 1, 2),)),)),))
    found = target.unmarked(differs, ObservedState(states={HOST: NOBODYS}), KINDS)
    assert found == ({HOST} if taken else set())


def test_an_adoption_of_all_names_what_it_leaves_out_because_it_can_not_be_read() -> None:
    given = site(box__a=BoxSpec(), box__b=BoxSpec(), setting__h=BoxSpec(), book__b=BoxSpec())
    blind = {"setting": "no host answers", "box/b": "dark", "book/b": "burnt", "box/theirs": "hidden"}
    observed = ObservedState(states={A: NOBODYS})
    found = target.adopting_all(whole(unreadable=blind), given, observed, KINDS)
    assert [item.key for item in found.items] == [A]
    assert [str(each.problem) for each in found.warnings] == [
        "box/b: it is not adopted, as it can't be read; dark; adopt it once it can be read",
        "setting: it is not adopted, as it can't be read; no host answers; adopt it once it can be read",
    ]
    stopped = target.adopting_all(whole(unreadable=blind), given, observed, KINDS, places=("setting",))
    assert stopped.unreadable == {"setting": "no host answers"}
    assert [each.problem.why for each in stopped.warnings] == ["dark"], "what stops it is said once"


def adopted(*keys: Key, plan: Plan | None = None, written: bool = True) -> tuple[str, ...]:
    resources = {each: BoxSpec() for each in (A, B, HOST)}
    lines = {(key, ""): Place(Path("site.yaml"), line, 1) for line, key in enumerate(resources, 2)}
    given = Site("toys", None, resources, places=lines if written else {})
    observed = ObservedState(states={A: NOBODYS, HOST: NOBODYS})
    found = target.adopting(plan or whole(), frozenset(keys), given, observed, KINDS)
    return tuple(map(str, found.problems))


def test_what_exists_can_be_adopted() -> None:
    assert adopted(A) == ()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            Key("box", "aa"),
            (
                "the site has no box/aa; an adoption marks the object of one of the site's resources; "
                "did you mean box/a?"
            ),
        ),
        (HOST, "site.yaml:4:1: setting/h needs no adoption; bfinfra only reads it; bfinfra apply SITE"),
        (
            B,
            "site.yaml:3:1: there is no box/b yet; no object has its name; create it with: bfinfra apply SITE",
        ),
    ],
)
def test_what_can_not_be_adopted_is_refused_with_what_to_do(key: Key, words: str) -> None:
    assert adopted(key) == (words,)
    assert adopted(key, written=False) == (
        words.removeprefix("site.yaml:3:1: ").removeprefix("site.yaml:4:1: "),
    )


def test_in_a_site_without_resources_an_adoption_says_to_add_one() -> None:
    found = target.adopting(whole(), frozenset({A}), site(), ObservedState(), KINDS)
    assert found.problems[0].next == "add it to the site"


def test_all_that_can_not_be_adopted_is_said_in_order() -> None:
    assert [each.split()[-2:] for each in adopted(HOST, B, A)] == [["apply", "SITE"]] * 2
    assert adopted(HOST, B)[0].startswith("site.yaml:3:1: there is no box/b")


@pytest.mark.parametrize(
    "stops", [{"problems": (Problem("box/a: it is theirs"),)}, {"unreadable": {"box/a": "dark"}}]
)
def test_what_the_plan_says_of_it_comes_before_what_an_adoption_would(stops: dict[str, Any]) -> None:
    said = tuple(map(str, stops.get("problems", ())))
    assert adopted(A, B, plan=whole(**stops)) == said
