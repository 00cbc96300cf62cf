"""Which Sites a watcher takes and gives up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kinds.of_several import of_several

from bfinfra.operator.desired import FINALIZER, Desired
from bfinfra.operator.watcher import memory
from bfinfra.operator.watcher.claims import FIRST, GIVES, LATE, Moves, Room, moves

SITE = Desired("ns", "poc", "u", 1, {"site": "poc"}, watch=True, finalizers=(FINALIZER,))


def sites(*replicas: str) -> list[Desired]:
    """One Site for each replica that follows it; "" for none."""
    return [
        replace(SITE, uid=f"u{number}", status={"watch": {"replica": name}})
        for number, name in enumerate(replicas)
    ]


def room(limit: int = 10, *others: str) -> Room:
    return Room("me", frozenset(("me", *others)), limit)


def mine(found: list[Desired]) -> list[str]:
    return [each.uid for each in found if each.watching.replica == "me"]


def decided(found: list[Desired], where: Room, since: float = 0.0) -> Moves:
    return moves(found, mine(found), where, {each.uid: since for each in found})


@of_several("--sites")
def test_alone_it_takes_all_that_it_may_have() -> None:
    assert set(decided(sites("", "", ""), room()).take) == {"u0", "u1", "u2"}
    assert len(decided(sites("", "", ""), room(2)).take) == 2
    assert decided(sites("me", "me", ""), room(2)).take == ()


def test_of_several_each_takes_its_share_in_an_order_of_its_own() -> None:
    found = sites(*[""] * 100)
    one = decided(found, room(100, "other")).take
    two = moves(found, (), Room("other", frozenset(("me", "other")), 100), {}).take
    assert (len(one), len(two)) == (50, 50)
    assert one[:10] != two[:10]


def test_what_nobody_takes_is_taken_beyond_the_share() -> None:
    found = sites("me", "me", "", "")
    assert decided(found, room(10, "full"), LATE - 1).take == ()
    assert set(decided(found, room(10, "full"), LATE).take) == {"u2", "u3"}
    assert len(decided(found, room(3, "full"), LATE).take) == 1


def test_sites_of_a_replica_that_is_gone_are_taken_and_those_of_one_that_lives_are_not() -> None:
    found = sites("gone", "other", "other")
    assert decided(found, room(10, "other")).take == ("u0",)


@pytest.mark.parametrize(
    "change", [{"watch": False}, {"suspend": True}, {"deleting": True}, {"finalizers": ()}]
)
def test_what_is_not_to_be_watched_is_left(change: dict[str, bool]) -> None:
    assert moves([replace(SITE, **change)], (), room(), {}).take == ()


def test_a_site_whose_replicas_were_lost_soon_waits_ever_longer() -> None:
    lost = replace(SITE, status={"watch": {"replica": "gone", "losses": 3}})
    assert moves([lost], (), room(), {"u": 2 * FIRST - 1}).take == ()
    assert moves([lost], (), room(), {"u": 2 * FIRST}).take == ("u",)
    once = replace(SITE, status={"watch": {"replica": "gone", "losses": 1}})
    assert moves([once], (), room(), {}).take == ("u",)


def test_a_new_replica_gets_sites_of_a_full_one_a_few_at_a_time() -> None:
    found = sites(*["me"] * 10)
    given = decided(found, room(10, "new")).give
    assert len(given) == GIVES
    assert {*given} <= {each.uid for each in found}
    assert decided(sites(*["me"] * 6, *["new"] * 5), room(10, "new")).give == ()


def test_who_has_too_many_for_its_memory_gives_one_up() -> None:
    found = sites("me", "me", "me")
    assert len(decided(found, room(memory.room(10, 3, memory.SPILLS))).give) == 1
    assert decided(found, room(memory.room(10, 3, memory.FULL))) == Moves()
    assert memory.room(10, 3, memory.FULL - 0.01) == 10
    assert memory.room(10, 1, 1.0) == 1


@pytest.mark.parametrize(
    ("text", "limit"), [("max\n", float("inf")), ("1048576\n", 1 << 20), (str(1 << 62), float("inf"))]
)
def test_the_containers_limit_is_read(text: str, limit: float, tmp_path: Path) -> None:
    (tmp_path / "max").write_text(text)
    assert memory.limit((tmp_path / "not there", tmp_path / "max")) == limit
    assert memory.limit((tmp_path / "not there",)) == float("inf")
    assert 0 <= memory.used() < 1
