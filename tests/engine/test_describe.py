"""What exists is described as a site would have it; what can't be is left out, and says why."""

from __future__ import annotations

import time
from typing import Annotated, Any

import pytest
from engine.toys import IMPATIENT, Box, BoxSpec, Lid, LidSpec, ToyState, ToyWorld, site
from pydantic import field_validator, model_validator

from bfinfra.engine.describe import Described, Written, asked, describe
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model import resource
from bfinfra.model.description import Description
from bfinfra.model.errors import Busy, Denied, RemoteError, Unreachable, Untrusted
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key, Ref
from bfinfra.model.site import Site, VCenterSettings


class HookSpec(resource.Spec):
    name_pattern = "[a-z]+"
    name_rule = "small letters"
    lid: Annotated[str, Ref("lid")]
    wall: Annotated[str | None, Ref("box", optional=True)] = None
    length: int = 1
    screws: tuple[int, ...] = ()

    @field_validator("length")
    @classmethod
    def _odd(cls, length: int) -> int:
        if length % 2 == 0:
            raise ValueError("even lengths break")
        return length

    @model_validator(mode="after")
    def _apart(self) -> HookSpec:
        if self.wall == self.lid:
            raise ValueError("a lid is no wall")
        return self


class Describing:
    """A kind that describes what it was given, or fails as often as there are errors."""

    def shows(self, *found: Description, errors: tuple[RemoteError, ...] = ()) -> Any:
        self.found, self.errors, self.needs = found, [*errors], {}
        return self

    def describe(self, needs: Any) -> Any:
        self.needs = needs
        yield from self.found[:1]
        if self.errors:
            raise self.errors.pop(0)
        yield from self.found[1:]


class Boxes(Describing, Box):
    """Boxes."""


class Lids(Describing, Lid):
    """Lids."""


class Hooks(Describing, Lid):
    """Hooks."""

    Spec = HookSpec


def one(name: str, **fields: object) -> Description:
    return Description(name, fields, ToyState(fields=fields))


def lid(name: str, on: str) -> Description:
    return one(name, box=on)


def found(
    boxes: Any = (),
    lids: Any = (),
    hooks: Any = (),
    *,
    only: str = "",
    there: Site | None = None,
    retry: RetryPolicy = IMPATIENT,
) -> Described:
    given = zip(("hook", "lid", "box"), (Hooks, Lids, Boxes), (hooks, lids, boxes), strict=True)
    kinds = {
        word: shown if isinstance(shown, Describing) else kind(ToyWorld()).shows(*shown)
        for word, kind, shown in given
    }
    return describe(kinds, there or site(), retry, frozenset(only.split()))


def written(described: Described) -> list[str]:
    return [*map(str, described.resources)]


def left(described: Described) -> dict[str, str]:
    return {str(key): why for key, why in described.left_out}


def test_what_exists_is_described_in_the_order_of_addresses() -> None:
    big, small = one("big", size=9), one("small")
    described = found((small, big), (lid("red", "big"),), (one("h", lid="red"),))
    assert written(described) == ["box/big", "box/small", "hook/h", "lid/red"]
    assert described.resources[Key("box", "big")] == Written(BoxSpec(size=9), big)
    assert described.resources[Key("lid", "red")].spec == LidSpec(box="big")
    assert (described.left_out, described.unreadable) == ((), {})


STATE = {"fields": {}}


@pytest.mark.parametrize(
    ("description", "why"),
    [
        (
            Description("x", {"size": "?"}, ToyState(**STATE, mark=Mark("other", "box/x"), copy="a copy")),
            "it belongs to box/x of the site other",
        ),
        (
            Description("x", {}, ToyState(**STATE, mark=Mark("toys", "box/y"))),
            "it belongs to box/y of the site toys",
        ),
        (Description("a\tb", {}, ToyState(**STATE, copy="a copy of box/b")), "a copy of box/b"),
        (
            Description("a\tb", {"material": "\ud800"}),
            "its name contains an invisible character, which a site's file can't hold",
        ),
        (
            Description("a/b", {"material": "\ud800"}),
            "it contains half of a character, which a site's file can't hold",
        ),
        (
            Description("a/b", {"size": "?"}, left_out="it is locked"),
            "a box can't have this name; allowed: no blanks and no slash, at most 253 characters",
        ),
        (Description("x", {"size": "?"}, left_out="it is locked"), "it is locked"),
        (
            Description("x", {"size": "?"}),
            "size: expected to be a valid integer, unable to parse string as an integer",
        ),
    ],
)
def test_what_a_site_can_not_have_is_left_out_with_the_reason(description: Description, why: str) -> None:
    described = found((description, one("other")))
    assert left(described) == {f"box/{description.name}": why}
    assert written(described) == ["box/other"]


@pytest.mark.parametrize("mark", [Mark("toys", "box/x"), None])
def test_what_is_this_sites_own_or_nobodys_is_described(mark: Mark | None) -> None:
    assert written(found((Description("x", {}, ToyState(fields={}, mark=mark)),))) == ["box/x"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"lid": "red", "length": 2}, "length: even lengths break"),
        ({"lid": "red", "wall": "red"}, "a lid is no wall"),
        ({"lid": {"a": 1}}, "lid: expected to be a valid string"),
        ({"lid": "red", "screws": [3, None]}, "screws.1: expected to be a valid integer"),
    ],
)
def test_fields_that_make_no_resource_are_told_as_an_editor_of_the_file_would_see_them(
    fields: dict[str, object], why: str
) -> None:
    described = found((one("a"),), (lid("red", "a"),), (Description("h", fields),))
    assert left(described) == {"hook/h": why}


def test_objects_of_one_name_are_left_out_together_and_counted_whatever_else_is_wrong() -> None:
    twins = (one("a"), Description("a", {}, left_out="it is locked"), one("b"), one("b"), one("a"), one("c"))
    described = found(twins)
    assert left(described) == {"box/a": "3 objects have this name", "box/b": "2 objects have this name"}
    assert len(described.left_out) == 2
    assert written(described) == ["box/c"]


def test_what_requires_something_that_is_not_described_is_left_out_and_so_is_what_requires_that() -> None:
    described = found(
        (one("a", size="?"), one("b")),
        (lid("red", "a"), lid("blue", "b"), lid("green", "nobody's")),
        (one("h", lid="red"), one("i", lid="blue", wall="a")),
    )
    assert written(described) == ["box/b", "hook/i", "lid/blue"]
    assert [f"{key}: {why}" for key, why in described.left_out[1:]] == [
        "hook/h: it names lid/red, which is not described",
        "lid/green: it names box/nobody's, which is not described",
        "lid/red: it names box/a, which is not described",
    ]


def test_what_the_site_has_already_may_be_named() -> None:
    assert written(found((), (lid("red", "a"),), there=site(box__a=BoxSpec()))) == ["lid/red"]


def test_of_some_kinds_only_these_and_what_they_require_is_described() -> None:
    boxes = (one("a"), one("b"), one("c", size="?"))
    lids = (lid("red", "a"), lid("blue", "b"), lid("green", "c"), lid("x y", "a"))
    hooks = (one("h", lid="red", wall="b"), one("i", lid="green"), one("X", lid="red"))
    some = found(boxes, lids, hooks, only="hook")
    assert written(some) == ["box/a", "hook/h", "lid/red"]
    assert left(some) == {
        "hook/X": "a hook can't have this name; allowed: small letters",
        "hook/i": "it names lid/green, which is not described",
    }
    assert written(found(boxes, lids, hooks, only="lid")) == ["box/a", "box/b", "lid/blue", "lid/red"]


def test_with_a_kind_all_that_it_may_refer_to_is_asked() -> None:
    specs = {"hook": HookSpec, "lid": LidSpec, "box": BoxSpec}
    assert asked(["hook"], specs.__getitem__) == {"hook", "lid", "box"}
    assert asked(["lid"], specs.__getitem__) == {"lid", "box"}


def test_a_kind_is_shown_what_was_found_of_those_that_it_refers_to() -> None:
    lids, a, there = Lids(ToyWorld()).shows(), one("a"), site(box__b=BoxSpec(), box__a=BoxSpec(size=2))
    found((a,), lids, there=there)
    assert {key.name: (each.spec, each.state) for key, each in lids.needs.items()} == {
        "a": (BoxSpec(size=2), a.state),
        "b": (BoxSpec(), None),
    }


def test_a_kind_that_can_not_describe_is_read_as_far_as_the_site_has_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Boxes, "undescribed", "nobody sees how a box was made")
    world, lids = ToyWorld(), Lids(ToyWorld()).shows(lid("red", "a"))
    world.things = {("box", name): ToyState(fields={}) for name in "ab"}
    boxes = Boxes(world).shows(one("a"))
    assert left(found(boxes, lids)) == {"lid/red": "it names box/a, which is not described"}
    assert (lids.needs, world.reads) == ({}, [])
    assert written(found(boxes, lids, there=site(box__a=BoxSpec()))) == ["lid/red"]
    assert lids.needs[Key("box", "a")].state == world.things["box", "a"]


# What can't be read.

AT = Site("toys", VCenterSettings(server="vc"), {})


@pytest.mark.parametrize("error", [Unreachable, Untrusted])
@pytest.mark.parametrize(
    ("server", "there", "ends"),
    [
        ("vc", AT, True),
        ("vc:443", AT, True),
        ("", AT, True),
        ("cluster", AT, False),
        ("vc:6443", AT, False),
        ("vc", Site("toys", VCenterSettings(), {}), True),
        ("vc", site(), True),
    ],
)
def test_without_the_vcenter_nothing_is_described_and_without_another_server_the_rest_is(
    error: type[RemoteError], server: str, there: Site, ends: bool
) -> None:
    raised = error("no connection", server=server)
    boxes = Boxes(ToyWorld()).shows(errors=(raised,) * 4)
    hooks = (one("h", lid="red"),)
    if ends:
        with pytest.raises(error):
            found(boxes, hooks=hooks, there=there)
    else:
        described = found(boxes, (lid("red", "a"),), hooks, there=there)
        assert described.unreadable == {"box": raised}
        assert [*left(described)] == ["hook/h", "lid/red"]


def test_what_the_vcenter_refuses_of_one_kind_leaves_the_others() -> None:
    denied = Denied("no right", server="vc")
    described = found((one("a"),), Lids(ToyWorld()).shows(errors=(denied,)), there=AT)
    assert (described.unreadable, written(described)) == ({"lid": denied}, ["box/a"])


def test_a_kind_that_fails_in_passing_is_asked_again_from_the_start() -> None:
    assert written(found(Boxes(ToyWorld()).shows(one("a"), one("b"), errors=(Busy("later"),)))) == [
        "box/a",
        "box/b",
    ]


@pytest.mark.parametrize(("lasts", "seconds"), [(90, 3), (1, 1)])
def test_a_vcenter_that_never_answered_is_waited_for_shortly(
    monkeypatch: pytest.MonkeyPatch, lasts: float, seconds: float
) -> None:
    clock: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: len(clock) / 2)
    away = Boxes(ToyWorld()).shows(errors=(Unreachable("no connection", server="vc", met=False),) * 200)
    with pytest.raises(Unreachable):
        found(away, retry=RetryPolicy(lasts=lasts, sleep=clock.append), there=AT)
    assert time.monotonic() == seconds
