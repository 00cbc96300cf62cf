"""Records are the standard library's dataclasses in all that is used of them, but for when their methods are
made.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import pickle
from dataclasses import asdict, field, fields, replace
from typing import Any, ClassVar

import pytest

from bfinfra.model.records import dataclass

DECORATORS = {"the standard one": dataclasses.dataclass, "ours": dataclass}


@dataclass(frozen=True, slots=True)
class Packed:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Base:
    kept: str = ""


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    count: int
    names: list[str] = field(default_factory=list, compare=False, repr=False)

    @functools.cached_property
    def doubled(self) -> int:
        return 2 * self.count


def made(decorator: Any, **switches: bool) -> Any:
    @decorator(**switches)
    class Thing:
        name: str
        size: int = 3
        inside: dict[str, int] = field(default_factory=dict, hash=False)
        secret: str = field(default="", repr=False, compare=False)

    return Thing


SWITCHES = [
    dict(zip(("frozen", "slots", "kw_only"), each, strict=True))
    for each in itertools.product((False, True), repeat=3)
]


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_a_record_shows_compares_and_hashes_as_a_standard_one(switches: dict[str, bool]) -> None:
    standard, ours = (made(decorator, **switches) for decorator in DECORATORS.values())
    given = [
        {"name": "a"},
        {"name": "a", "size": 4},
        {"name": "b", "inside": {"x": 1}},
        {"name": "a", "secret": "s"},
    ]
    assert [repr(ours(**each)) for each in given] == [repr(standard(**each)) for each in given]
    for one, other in itertools.product(given, repeat=2):
        assert (ours(**one) == ours(**other)) == (standard(**one) == standard(**other))
        assert ours(**one) != standard(**one)
        if switches["frozen"]:
            assert (hash(ours(**one)) == hash(ours(**other))) == (
                hash(standard(**one)) == hash(standard(**other))
            )
    if not switches["frozen"]:
        assert ours.__hash__ is standard.__hash__ is None
    assert [f.name for f in fields(ours)] == [f.name for f in fields(standard)]
    assert asdict(ours(name="a")) == asdict(standard(name="a"))


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize(
    "given",
    [
        ((), {}),
        (("a", 1, {}, "", 5), {}),
        (("a",), {"name": "b"}),
        (("a",), {"colour": "red"}),
        (("a", 2), {}),
    ],
    ids=str,
)
def test_what_a_standard_one_refuses_is_refused_in_the_same_words(
    given: tuple[tuple[Any, ...], dict[str, Any]], switches: dict[str, bool]
) -> None:
    texts = []
    for decorator in DECORATORS.values():
        kind = made(decorator, **switches)
        try:
            texts.append(repr(kind(*given[0], **given[1])))
        except TypeError as error:
            texts.append(str(error))
    assert texts[0] == texts[1]


def test_what_is_frozen_cannot_be_changed() -> None:
    for record in (Base("a"), Packed("a"), Derived(count=1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match=r"^cannot assign to field 'name'"):
            record.name = "b"
        with pytest.raises(dataclasses.FrozenInstanceError):
            del record.name


def test_a_default_that_is_made_is_made_for_each() -> None:
    one, other = Derived(count=1), Derived(count=1)
    one.names.append("x")
    assert other.names == []
    assert one == other, "what is not compared is not"


def test_fields_are_inherited_and_values_worked_out_once_are_kept() -> None:
    record = Derived(count=2, kept="k")
    assert (record.kept, record.doubled) == ("k", 4)
    assert replace(record, count=3).doubled == 6
    assert record != Base("k")


def test_a_standard_dataclass_may_inherit_from_ours_and_ours_from_a_standard_one() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Standard(Derived):
        more: int = 5

    @dataclass(frozen=True)
    class Ours(Standard):
        most: int = 6
        names: list[str] = field(default_factory=lambda: ["n"])

    record = Ours(count=1, most=7)
    assert (record.kept, record.more, record.most, record.names) == ("", 5, 7, ["n"])
    assert [f.name for f in fields(record)] == ["kept", "count", "names", "more", "most"]
    assert Ours.__match_args__ == ("kept", "names", "most")
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Loose", (Ours,), {}))


def test_records_with_slots_are_copied_and_pickled() -> None:
    record = Packed("a", (1, 2))
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == record
    assert not hasattr(record, "__dict__")
    with pytest.raises(ValueError, match="shorter"):
        copy.copy(record).__setstate__(["of an earlier release"])


def test_a_method_that_is_written_in_the_class_stays() -> None:
    @dataclass(frozen=True)
    class Named:  # noqa: PLW1641 - what hash it gets is part of the test
        name: str

        def __repr__(self) -> str:
            return "a named one"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named)

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    assert repr(Named("a")) == "a named one"
    assert Named("a") == Named("b")
    assert isinstance(hash(Named("a")), int)
    with pytest.raises(ValueError, match="no name"):
        Named("")


def test_what_makes_a_record_is_written_when_the_first_one_is_made() -> None:
    kind = made(dataclass, frozen=True)
    before = kind.__init__
    kind(name="a")
    written = kind.__init__
    kind(name="b")
    assert before is not written is kind.__init__


def test_a_record_that_holds_itself_can_be_shown() -> None:
    @dataclass
    class Ring:
        next: Any = None

    ring = Ring()
    ring.next = ring
    assert repr(ring).endswith("Ring(next=...)")


def test_a_record_is_what_a_standard_one_is_whenever_it_is_declared() -> None:
    @dataclass(frozen=True)
    class Above:
        kept: str = ""

    @dataclass(frozen=True, kw_only=True)
    class Below(Above):
        limit: ClassVar[int] = 3
        more: int = 5

        @functools.cached_property
        def doubled(self) -> int:
            return 2 * self.more

    assert [each.name for each in fields(Below)] == ["kept", "more"]
    assert (Below.more, Below.limit, Below("k").kept) == (5, 3, "k")
    assert "__dataclass_params__" in vars(Below)
    with pytest.raises(TypeError):
        Below("k", 7)
    worked_out = Below()
    assert worked_out.doubled == 10
    assert "doubled" in vars(copy.copy(worked_out))
    for change in (lambda: setattr(worked_out, "more", 1), lambda: delattr(worked_out, "more")):
        with pytest.raises(dataclasses.FrozenInstanceError, match=r"^cannot assign to field 'more'$"):
            change()


def test_a_record_with_slots_is_restored_whole_or_not_at_all() -> None:
    @dataclass(frozen=True, slots=True)
    class Held:
        name: str
        sizes: tuple[int, ...] = ()

    assert copy.copy(Held("a", (1,))) == Held("a", (1,))
    with pytest.raises(ValueError, match="shorter"):
        Held("a").__setstate__(["of an earlier release"])


def test_a_record_without_fields_is_one_and_what_is_not_frozen_is_set_as_any_attribute() -> None:
    @dataclass
    class Empty:
        pass

    @dataclass
    class Watched:
        name: str

        def __setattr__(self, name: str, value: object) -> None:
            object.__setattr__(self, name, f"set: {value}")

    assert Empty() == Empty()
    assert Watched("a").name == "set: a"
