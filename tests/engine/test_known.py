"""Deciding on a thousand resources looks at each of them a few times, not at all of them for each: work is
counted, not timed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from engine.toys import BoxSpec, LidSpec, LidState, ToyState, ToyWorld, lines, planned, site

from bfinfra.engine import drift, graph, plan
from bfinfra.engine.known import Known
from bfinfra.engine.observe import ObservedState
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.kind import Observation
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key, edges
from bfinfra.model.siblings import Siblings


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often references were resolved and everything was put in order."""
    done: Counter[str] = Counter()
    resolve, known = graph.resolve, plan.known

    def counted_resolve(value, everything):
        done["resolve"] += 1
        return resolve(value, everything)

    def counted_known(desired, world):
        done["known"] += 1
        return known(desired, world)

    monkeypatch.setattr(graph, "resolve", counted_resolve)
    monkeypatch.setattr(plan, "known", counted_known)
    return done


def test_the_work_of_a_plan_grows_as_its_resources(work):
    def of(count: int) -> Counter[str]:
        work.clear()
        wanted = {f"box__b{n}": BoxSpec() for n in range(count)} | {
            f"lid__l{n}": LidSpec(box=f"b{n}") for n in range(count)
        }
        assert len(lines(planned(ToyWorld(), site(**wanted)))) == 2 * count
        return work.copy()

    few, many = of(10), of(100)
    assert many["known"] == few["known"] == 1
    assert many["resolve"] == 10 * few["resolve"]


def test_the_work_of_a_drift_check_grows_as_its_resources_where_the_file_moved_for_all(work, monkeypatch):
    monkeypatch.setattr(drift, "known", plan.known)

    def of(count: int) -> Counter[str]:
        world, now = ToyWorld(), site(**{f"box__b{n}": BoxSpec(size=3) for n in range(count)})
        desired, kinds = plan.DesiredState.of(now), world.kinds()
        states = {
            key: ToyState(
                mark=Mark(now.name, str(key)).committed(BoxSpec(size=2).applied()), fields={"size": 2}
            )
            for key in now.resources
        }
        found, observed = (
            plan.make(now, desired, ObservedState(states=dict(states)), kinds),
            ObservedState(states=dict(states)),
        )
        work.clear()
        assert len(drift.report(found, desired, observed, kinds).found) == count
        return work.copy()

    few, many = of(10), of(100)
    assert many["known"] == few["known"] == 1
    assert many["resolve"] <= 10 * few["resolve"]


class Counted(dict):
    """Counts how often somebody goes through all of it."""

    passes = 0

    def items(self):
        self.passes += 1
        return super().items()

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


@dataclass
class Server:
    host: str


def test_everybody_finds_the_peers_on_its_host_in_one_pass_over_all():
    everyone = Counted({f"s{n:03}": (Server(f"h{n // 8}"), None) for n in range(800)})
    siblings = Siblings(everyone)
    for n in range(800):
        context = PlanContext(
            Mark("s", f"server/s{n:03}"),
            {"host": ResolvedRef(Key("host", f"h{n // 8}"), None, None)},
            siblings.but(f"s{n:03}"),
        )
        assert set(context.sharing("host")) == {f"s{m:03}" for m in range(n // 8 * 8, n // 8 * 8 + 8)} - {
            f"s{n:03}"
        }
    assert everyone.passes == 1


def test_a_resource_that_is_elsewhere_than_desired_shares_both_places():
    siblings = Siblings(
        {
            "moved": (Server("new"), Server("old")),
            "going": (None, Server("old")),
            "coming": (Server("new"), None),
        }
    )
    assert set(siblings.naming("host", "old")) == {"moved", "going"}
    assert set(siblings.naming("host", "new")) == {"moved", "coming"}


def test_peers_are_all_but_oneself():
    siblings = Siblings({"a": (1, None), "b": (2, None)}).but("a")
    assert dict(siblings) == {"b": (2, None)}
    assert (len(siblings), "a" in siblings, siblings.get("a")) == (1, False, None)


def test_plain_mappings_serve_as_peers():
    context = PlanContext(
        Mark("s", "server/x"),
        {"host": ResolvedRef(Key("host", "h1"), None, None)},
        {"y": (Server("h1"), None), "z": (Server("h2"), None)},
    )
    assert set(context.sharing("host")) == {"y"}


def test_fields_without_references_are_not_looked_through():
    class Costly(LidSpec):
        weight: dict[str, dict[str, str]] = {}  # noqa: RUF012 - pydantic copies it

    found = Costly(box="a", weight={"x": {"y": "z"}})
    object.__setattr__(found, "weight", Never())
    assert [edge.name for edge in edges(found)] == ["a"]


class Never(dict):
    def items(self):
        raise AssertionError("looked through")


def test_what_a_look_at_one_resource_brings_along_is_not_another_ones():
    """Two that are looked at side by side decide on their own facts, whoever looked last."""
    observed = ObservedState()
    observed.take("box", Observation({}, facts="of the survey"))
    for name in ("a", "b"):
        observed.take("box", Observation({}, facts=f"of {name}"), [name])
    found = Known("toys", {Key("box", name): BoxSpec() for name in "abc"}, observed.states, observed.facts)
    assert [found.context(Key("box", name), None).facts for name in "abc"] == [
        "of a",
        "of b",
        "of the survey",
    ]


class Single(dict):
    """Answers for single keys only."""

    def __iter__(self):
        raise AssertionError("gone through")


def test_who_looks_at_one_resource_and_one_peer_of_it_goes_through_nothing():
    """An apply decides anew on each of a thousand resources, each time on what was just observed."""
    wanted = Single({Key("lid", name): LidSpec(box="a") for name in "ab"} | {Key("box", "a"): BoxSpec()})
    context = Known("toys", wanted, Single(), {}).context(Key("lid", "a"), wanted[Key("lid", "a")])
    assert context.needs["box"].spec is wanted[Key("box", "a")]
    assert context.siblings["b"] == (wanted[Key("lid", "b")], None)
    with pytest.raises(KeyError):
        context.siblings["c"]


def test_what_is_in_the_file_or_exists_is_known_and_nothing_else():
    both = Known("toys", {Key("box", "a"): BoxSpec()}, {Key("box", "b"): ToyState(fields={})}, {})
    assert [Key("box", name) in both for name in "abc"] == [True, True, False]


def test_what_is_to_be_deleted_is_decided_by_what_its_state_names_and_by_all_that_the_site_wants():
    states = {Key("lid", "l"): LidState(fields={}, box="a"), Key("box", "a"): ToyState(fields={})}
    wanted = {Key("box", "b"): BoxSpec()}
    context = Known("toys", wanted, states, {}).context(Key("lid", "l"), None)
    assert context.needs == {"box": ResolvedRef(Key("box", "a"), None, states[Key("box", "a")])}
    assert context.wanted is wanted
