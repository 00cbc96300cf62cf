"""The order that nobody writes down: what one resource provides and another requires, and what stands under
`after`.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Annotated

import pytest
from engine.toys import BoxSpec, LidSpec, LidState, ToyState, ToyWorld, applied, lines, planned, site

from bfinfra.engine.graph import closure, levels, resolve, sort, waits
from bfinfra.model.errors import BfinfraError
from bfinfra.model.events import Ended
from bfinfra.model.mark import Mark
from bfinfra.model.order import Capability
from bfinfra.model.readiness import failed
from bfinfra.model.refs import Key, Ref

A, B, C = (Key("box", name) for name in "abc")


class Tool(BoxSpec):
    """A box that provides and requires what its fields say, at one place or another."""

    offers: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    where: str = "here"

    def provides(self, name: str, site: object) -> Iterable[Capability]:
        return (Capability(each, self.where) for each in self.offers)

    def requires(self, name: str, site: object) -> Iterable[Capability]:
        return (Capability(each, self.where) for each in self.wants)


class Tools(ToyWorld):
    """Whose boxes are tools, also where only a mark tells of them."""

    def kinds(self):
        found = super().kinds()
        found["box"].Spec = Tool
        return found


def test_what_requires_comes_after_what_provides_it_and_says_why():
    assert waits({A: Tool(wants=("glue",)), B: Tool(offers=("glue",))}, {})[A] == {B: "glue on here"}


@pytest.mark.parametrize("other", [Tool(offers=("glue",), where="there"), Tool(offers=("tape",)), Tool()])
def test_what_nobody_in_the_site_provides_is_there_anyway(other):
    assert waits({A: Tool(wants=("glue",)), B: other}, {})[A] == {}


def test_everybody_who_provides_it_comes_first_but_nobody_waits_for_himself():
    both = Tool(offers=("glue",), wants=("glue",))
    assert waits({A: both, B: Tool(offers=("glue",)), C: Tool()}, {}) == {
        A: {B: "glue on here"},
        B: {},
        C: {},
    }


def test_several_that_it_requires_of_another_are_counted_each_once():
    glue, tape = Tool(offers=("glue", "tape")), Tool(wants=("glue", "tape", "tape"))
    assert waits({A: tape, B: glue}, {})[A] == {B: "glue on here and 1 more"}
    assert waits({A: Tool(wants=("tape", "tape")), B: glue}, {})[A] == {B: "tape on here"}


def test_what_is_required_and_provided_may_depend_on_the_name_and_on_the_whole_site():
    class Numbered(BoxSpec):
        def provides(self, name, site):
            yield Capability(f"box {name}", f"a shelf of {len(site)}")

        def requires(self, name, site):
            yield Capability({"a": "box b"}.get(name, "nothing"), f"a shelf of {len(site)}")

    assert waits({A: Numbered(), B: Numbered()}, {}) == {A: {B: "box b on a shelf of 2"}, B: {}}


def test_what_there_is_in_one_place_only_is_named_without_it():
    assert str(Capability("glue")) == "glue"


def test_a_reference_stays_one_where_the_same_is_required_too():
    class Held(LidSpec):
        def requires(self, name, site):
            yield Capability("glue", "here")

    assert waits({Key("lid", "l"): Held(box="b", after=("box/b",)), B: Tool(offers=("glue",))}, {})[
        Key("lid", "l")
    ] == {B: ""}


def test_after_orders_and_is_no_part_of_what_is_applied():
    world, wanted = ToyWorld(), site(box__a=BoxSpec(after=("box/b",)), box__b=BoxSpec())
    assert lines(planned(world, wanted)) == ["create box/b: make b", "create box/a: make a"]
    applied(world, wanted)
    assert wanted.resources[A].applied() == {}
    assert lines(planned(world, site(box__a=BoxSpec(), box__b=BoxSpec(after=("box/a",))))) == [
        "keep box/a",
        "keep box/b",
    ]


def test_what_requires_is_blocked_and_says_for_what_where_its_provider_fails():
    world = Tools(readiness=lambda _: failed("it is empty"))
    endings, events = applied(
        world,
        site(box__a=Tool(wants=("glue",)), box__b=Tool(offers=("glue",)), box__c=Tool(after=("box/b",))),
    )
    assert endings == {"box/a": "blocked", "box/b": "failed", "box/c": "blocked"}
    assert world.writes == ["make b"]
    assert {str(event.key): event.problem.what for event in events if isinstance(event, Ended)} | {
        "box/b": ""
    } == {
        "box/a": "box/a waits for box/b (glue on here)",
        "box/b": "",
        "box/c": "box/c waits for box/b (after)",
    }


def test_what_could_not_be_read_blinds_what_names_it_and_not_what_only_comes_after_it():
    world = ToyWorld(unreadable={"b": "no answer"})
    plan = planned(
        world, site(box__a=Tool(wants=("glue",)), box__b=Tool(offers=("glue",)), lid__l=LidSpec(box="b"))
    )
    assert plan.unreadable == {"box/b": "no answer", "lid/l": "no answer"}
    assert lines(plan) == ["create box/a: make a"]


@pytest.mark.parametrize("first", ["a", "b"])
def test_destroy_takes_what_requires_before_what_provides(first):
    world = Tools()
    tools = {
        f"box__{name}": Tool(offers=("glue",)) if name == first else Tool(wants=("glue",)) for name in "ab"
    }
    applied(world, site(**tools))
    last = {"a": "b", "b": "a"}[first]
    assert lines(planned(world, site(**tools), destroy=True)) == [
        f"delete box/{last}: burn {last}",
        f"delete box/{first}: burn {first}",
    ]
    assert lines(planned(world, site())) == [
        f"delete box/{last}: burn {last}",
        f"delete box/{first}: burn {first}",
    ], "their marks tell, where the file has them no longer"


def test_a_provider_goes_after_what_required_it_until_then():
    world = Tools()
    applied(world, site(box__a=Tool(wants=("glue",)), box__b=Tool(offers=("glue",))))
    assert lines(planned(world, site(box__a=Tool(size=2)))) == [
        "update box/a: change a",
        "delete box/b: burn b",
    ]


def test_destroy_deletes_in_the_reverse_order_of_after():
    world, wanted = ToyWorld(), site(box__a=BoxSpec(after=("box/b",)), box__b=BoxSpec())
    applied(world, wanted)
    assert lines(planned(world, wanted, destroy=True)) == ["delete box/a: burn a", "delete box/b: burn b"]


def test_a_resource_that_is_only_in_the_file_passes_its_dependencies_on():
    lid, between = Key("lid", "l"), Key("box", "between")
    everything = {
        lid: LidSpec(box="between"),
        between: Tool(wants=("glue",)),
        B: Tool(offers=("glue",)),
        C: Tool(after=("box/between",)),
    }
    states = {key: ToyState(mark=Mark("toys", str(key)), fields={}) for key in (lid, B, C)}
    assert waits({}, states, everything)[B] == {lid: "by box/between", C: "by box/between"}


def test_destroy_follows_also_what_the_file_has_and_nobody_made():
    world = Tools()
    wanted = site(lid__a=LidSpec(box="m"), box__m=Tool(wants=("glue",)), box__b=Tool(offers=("glue",)))
    applied(world, wanted)
    del world.things["box", "m"]
    items = {item.key: item for item in planned(world, wanted, destroy=True).items}
    assert items[B].because == {Key("lid", "a"): "by box/m"}


def test_existing_objects_are_deleted_though_the_file_reversed_their_order():
    world = Tools()
    applied(world, site(box__a=Tool(wants=("glue",)), box__b=Tool(offers=("glue",))))
    turned = site(box__a=Tool(), box__b=Tool(after=("box/a",)))
    assert {item.key for item in planned(world, turned, destroy=True).items} == {A, B}


def test_what_is_unfinished_goes_as_the_file_says():
    marks = {("box", name): ToyState(mark=Mark("toys", f"box/{name}"), fields={}) for name in "ab"}
    wanted = site(box__a=Tool(wants=("glue",)), box__b=Tool(offers=("glue",)))
    assert lines(planned(Tools(marks), wanted, destroy=True)) == [
        "delete box/a: burn a",
        "delete box/b: burn b",
    ]


def test_a_circle_is_named():
    circle = waits(
        {A: Tool(offers=("glue",), wants=("tape",)), B: Tool(offers=("tape",), wants=("glue",))}, {}
    )
    with pytest.raises(BfinfraError, match=r"these wait for each other: box/. → box/. → box/."):
        sort(circle)


def test_ten_thousand_that_need_one_are_ordered_by_one_look_at_each():
    wanted = {B: Tool(offers=("glue",))} | {Key("box", f"n{n}"): Tool(wants=("glue",)) for n in range(10_000)}
    order = sort(waits(wanted, {}))
    assert order[0] == B and len(order) == 10_001


def test_a_closure_has_each_that_is_led_to_once_also_in_a_circle():
    leads = {"a": ["b", "c"], "b": ["a"], "c": [], "d": ["a"]}
    assert closure(["a"], leads.__getitem__) == {"a", "b", "c"}


def test_what_exists_and_names_something_that_is_nowhere_is_deleted_all_the_same():
    lid = Key("lid", "top")
    state, spec = LidState(fields={}, box="gone"), LidSpec(box="gone")
    assert waits({}, {lid: state}, {lid: spec, Key("box", "b"): BoxSpec()}) == {lid: {}}


def test_what_goes_waits_for_what_still_names_it_and_no_words_are_needed_for_that():
    lid = Key("lid", "top")
    assert waits({}, {A: ToyState(fields={}), lid: LidState(fields={}, box="a")}) == {A: {lid: ""}, lid: {}}


class Rope(BoxSpec):
    """A rope around a box or a crate."""

    around: Annotated[str, Ref("box", "crate")]


@pytest.mark.parametrize(
    ("known", "kind"), [(("box",), "box"), (("crate",), "crate"), (("crate", "box"), "box"), ((), "box")]
)
def test_a_name_is_of_the_first_kind_that_has_it_and_of_the_first_of_all_if_none_has(known, kind):
    assert resolve(Rope(around="a"), [Key(each, "a") for each in known]) == {"around": Key(kind, "a")}


def test_kinds_are_surveyed_after_those_that_their_specs_or_their_states_name():
    specs, states = {"by_spec": LidSpec, "rope": Rope}, {"by_state": LidState}
    kinds = {
        name: SimpleNamespace(Spec=specs.get(name, BoxSpec), State=states.get(name, ToyState), alone=False)
        for name in ("rope", "by_spec", "by_state", "box")
    }
    assert levels(kinds) == (("box",), ("by_spec", "by_state", "rope"))
    kinds["rope"].alone = True
    assert levels(kinds)[0] == ("box", "rope")
