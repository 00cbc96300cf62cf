"""An adoption takes what is unmarked, and ends."""

from __future__ import annotations

from dataclasses import replace

from engine.toys import IMPATIENT, Box, BoxSpec, ToyWorld, applied, lines, site

from bfinfra.app.plan import narrowed
from bfinfra.engine.observe import survey
from bfinfra.engine.plan import DesiredState, make
from bfinfra.model.readiness import waiting
from bfinfra.model.refs import Key

TWO = site(box__a=BoxSpec(), box__b=BoxSpec())
BOTH = frozenset({Key("box", "a"), Key("box", "b")})


def test_all_is_the_unmarked_and_reverts_no_drift_of_what_is_managed():
    world = ToyWorld()
    applied(world, TWO)
    world.things["box", "a"] = replace(world.things["box", "a"], fields={"size": 5})
    world.things["box", "b"] = replace(world.things["box", "b"], mark=None)
    desired = DesiredState.of(TWO, adopt=BOTH)
    observed, kinds = survey(world.kinds(), desired.wanted, IMPATIENT), world.kinds()
    found = make(TWO, desired, observed, kinds)
    assert len(found.pending) == 2
    adopted = narrowed(found, BOTH, BOTH, TWO, observed, kinds, adopt_all=True)
    assert lines(adopted) == ["update box/b: change b"]


class Setting(Box):
    """What exists anyway, such as a host."""

    managed = False


def test_all_takes_the_settings_that_are_as_the_site_says_and_leaves_the_others_to_an_apply():
    world = ToyWorld()
    applied(world, TWO)
    for name in "ab":
        world.things["box", name] = replace(world.things["box", name], mark=None)
    world.things["box", "a"] = replace(world.things["box", "a"], fields={"size": 5})
    desired = DesiredState.of(TWO, adopt=BOTH, marking=True)
    kinds = {"box": Setting(world)}
    observed = survey(kinds, desired.wanted, IMPATIENT)
    adopted = narrowed(make(TWO, desired, observed, kinds), BOTH, BOTH, TWO, observed, kinds, adopt_all=True)
    assert lines(adopted) == ["update box/b: change b"]


def test_it_waits_for_nothing_once_its_marks_are_written():
    world = ToyWorld()
    applied(world, TWO)
    world.readiness = lambda _: waiting("no tools run in it")
    wanted = site(box__a=BoxSpec(size=2), box__b=BoxSpec())
    assert applied(world, wanted, settle=False)[0] == {"box/a": "done", "box/b": "kept"}
    assert set(applied(world, wanted, deadline=0.01)[0].values()) == {"still-waiting"}
