"""What a decision may read of other resources of its kind, and of those that it names."""

from __future__ import annotations

from types import SimpleNamespace as Made

import pytest

from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.model.siblings import Everyone, Siblings

A, B, C, OTHER = Key("box", "a"), Key("box", "b"), Key("box", "c"), Key("lid", "a")
WANTED = {A: Made(place="hall", size=1), B: Made(place="hall", size=2), OTHER: Made(place="hall")}
STATES = {B: Made(place="yard", size=2), C: Made(place="yard", size=3), OTHER: Made(place="hall")}
PAIRS = {"b": (WANTED[B], STATES[B]), "c": (None, STATES[C]), "a": (WANTED[A], None)}


@pytest.fixture
def everyone() -> Everyone:
    return Everyone("box", WANTED, STATES)


def test_a_kinds_resources_are_those_of_the_file_and_those_that_exist(everyone: Everyone) -> None:
    assert [*everyone] == [*PAIRS]
    assert dict(everyone.items()) == PAIRS
    assert len(everyone) == 3


@pytest.mark.parametrize("sorted_before", [False, True])
def test_one_of_them_is_found_by_its_name(everyone: Everyone, sorted_before: bool) -> None:
    if sorted_before:
        assert len(everyone) == 3
    assert {name: everyone[name] for name in PAIRS} == PAIRS
    with pytest.raises(KeyError, match="nobody"):
        everyone["nobody"]
    assert ("_pairs" in vars(everyone)) is sorted_before, "for single ones nothing is sorted"


def test_the_siblings_are_all_but_oneself(everyone: Everyone) -> None:
    siblings = Siblings(everyone).but("b")
    assert dict(siblings) == {name: pair for name, pair in PAIRS.items() if name != "b"}
    assert (len(siblings), len(Siblings(everyone)), len(siblings.but("nobody"))) == (2, 3, 3)
    assert siblings.own == PAIRS["b"]
    assert siblings.but("nobody").own == (None, None)
    with pytest.raises(KeyError, match="b"):
        siblings["b"]


def test_what_one_resource_worked_out_of_all_the_others_have(everyone: Everyone) -> None:
    siblings, asked = Siblings(everyone), []

    def work() -> int:
        asked.append(1)
        return 7

    assert [siblings.but(name).once("sum", work) for name in "abc"] == [7, 7, 7]
    assert siblings.but("a").once("other", lambda: 8) == 8
    assert asked == [1]
    assert Siblings(everyone).once("sum", lambda: 9) == 9


def test_the_siblings_in_one_place_are_those_of_whose_file_or_state_has_it(everyone: Everyone) -> None:
    siblings = Siblings(everyone)
    assert siblings.but("a").naming("place", "hall") == {"b": PAIRS["b"]}
    assert siblings.but("a").naming("place", "yard") == {"b": PAIRS["b"], "c": PAIRS["c"]}
    assert siblings.but("b").naming("place", "yard") == {"c": PAIRS["c"]}
    assert siblings.but("a").naming("size", 3) == {"c": PAIRS["c"]}
    assert siblings.naming("size", "nothing") == {}
    for given in (siblings.but("a"), {name: PAIRS[name] for name in "bc"}):
        context = PlanContext(
            Mark("s", "box/a"), needs={"place": ResolvedRef(Key("room", "yard"), None, None)}, siblings=given
        )
        assert context.sharing("place") == {"b": PAIRS["b"], "c": PAIRS["c"]}
        assert context.name == "a"


def test_what_a_reference_has_not_yet_is_known_later() -> None:
    for state in (None, Made(address=None)):
        assert ResolvedRef(A, None, state).get("address") == Unknown(A, "address")
    assert ResolvedRef(A, None, Made(address="")).get("address") == ""
    with pytest.raises(AttributeError):
        ResolvedRef(A, None, Made()).get("address")
