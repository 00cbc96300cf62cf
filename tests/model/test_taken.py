"""What only one resource of a site may have, and networks that hide machines."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from bfinfra.model.conflict import (
    Conflict,
    Inner,
    Spot,
    Taken,
    address,
    covered,
    network,
    thing,
    twice,
    unfit,
    unreachable,
)
from bfinfra.model.errors import Place
from bfinfra.model.refs import Key

A, B, C = (Key("server", name) for name in "abc")


def number(text: str) -> int:
    return int(ipaddress.ip_address(text))


def around(first: str, last: str) -> tuple[int, int]:
    return number(first), number(last)


FIVE = number("10.0.0.5")


@pytest.mark.parametrize(
    ("text", "more", "taken"),
    [
        ("10.0.0.5", {}, ("10.0.0.5", "IPv4", FIVE, FIVE)),
        (
            "10.0.0.5/24",
            {},
            ("10.0.0.5", "IPv4", FIVE, FIVE, None, "", False, around("10.0.0.0", "10.0.0.255")),
        ),
        (
            "10.0.0.5/24",
            {"count": 3, "owner": "m", "on": ("VM Network", True)},
            (
                *("10.0.0.5 with the 2 after it", "IPv4", FIVE, FIVE + 2, "m", "VM Network", True),
                around("10.0.0.0", "10.0.0.255"),
            ),
        ),
        (
            "fd00::5/64",
            {},
            (
                *("fd00::5", "IPv6", number("fd00::5"), number("fd00::5"), None, "", False),
                around("fd00::", "fd00::ffff:ffff:ffff:ffff"),
            ),
        ),
        ("10.0.0.5/33", {}, ("10.0.0.5", "IPv4", FIVE, FIVE)),
    ],
)
def test_an_address_is_taken_with_those_after_it(
    text: str, more: dict[str, Any], taken: tuple[Any, ...]
) -> None:
    assert [*address("nic", text, **more)] == [Taken("nic", *taken)]


@pytest.mark.parametrize("text", ["dhcp", "server.example.com", "", "10.0.0.256", "a\0b"])
def test_a_name_takes_no_address(text: str) -> None:
    assert [*address("nic", text)] == [*network("nic", text)] == []
    assert unfit(text) == unreachable(text, "10.0.0.5/24") == unreachable("10.0.0.1", text) == ""


@pytest.mark.parametrize(
    ("cidr", "version", "first", "last"),
    [
        ("10.0.0.0/30", "IPv4", "10.0.0.0", "10.0.0.3"),
        ("10.0.0.7/32", "IPv4", "10.0.0.7", "10.0.0.7"),
        ("fd00::/126", "IPv6", "fd00::", "fd00::3"),
        ("fd00::7/128", "IPv6", "fd00::7", "fd00::7"),
    ],
)
def test_a_network_takes_each_of_its_addresses(cidr: str, version: str, first: str, last: str) -> None:
    assert [*network("f", cidr)] == [Taken("f", cidr, version, number(first), number(last))]


def test_a_thing_is_taken_by_its_name_in_its_scope() -> None:
    pod = thing("name", "Pod/train", "cluster", "namespace")
    assert pod == Taken("name", "Pod/train", ("cluster", "namespace"), "Pod/train", "Pod/train")
    assert [*twice([(A, pod), (B, thing("name", "Pod/train", "cluster", "other"))])] == []
    assert [*twice([(A, pod), (B, thing("name", "Pod/other", "cluster", "namespace"))])] == []
    [found] = twice([(A, pod), (B, pod)])
    assert found.what == "Pod/train is server/a's already"


@pytest.mark.parametrize(
    ("interface", "meaning"),
    [
        ("10.0.0.0/24", "10.0.0.0/24 is no machine's address: it means the network itself"),
        ("10.0.0.255/24", "10.0.0.255/24 is no machine's address: it means all machines in the network"),
        ("10.0.0.0/30", "10.0.0.0/30 is no machine's address: it means the network itself"),
        ("10.0.0.5/24", ""),
        ("10.0.0.0/31", ""),
        ("10.0.0.0/32", ""),
        ("10.0.0.0/33", ""),
        ("fd00::/64", ""),
    ],
)
def test_what_means_a_whole_network_is_no_machines_address(interface: str, meaning: str) -> None:
    assert unfit(interface) == meaning


@pytest.mark.parametrize(
    ("gateway", "interface", "why"),
    [
        ("10.0.0.1", "10.0.0.5/24", ""),
        ("10.0.0.0", "10.0.0.5/24", ""),
        ("10.0.0.255", "10.0.0.5/24", ""),
        ("10.0.0.4", "10.0.0.5/24", ""),
        ("10.0.0.8", "10.0.0.5/24", ""),
        ("10.0.0.5", "10.0.0.5/24", "10.0.0.5 is one of the addresses that are assigned"),
        ("10.0.0.6", "10.0.0.5/24", "10.0.0.6 is one of the addresses that are assigned"),
        ("10.0.0.7", "10.0.0.5/24", "10.0.0.7 is one of the addresses that are assigned"),
        (
            "10.0.1.0",
            "10.0.0.5/24",
            "10.0.1.0 is outside of the network of 10.0.0.5/24, and can't be reached",
        ),
        ("fd00::1", "10.0.0.5/24", "fd00::1 is outside of the network of 10.0.0.5/24, and can't be reached"),
        ("10.0.0.1", "10.0.0.5", ""),
    ],
)
def test_a_gateway_is_beside_what_it_serves(gateway: str, interface: str, why: str) -> None:
    assert unreachable(gateway, interface, count=3).removesuffix(" from there") == why
    assert (unreachable(gateway, interface) == "") is (not why or gateway in {"10.0.0.6", "10.0.0.7"})


def span(first: int, last: int, **more: Any) -> Taken:
    return Taken("nic", f"{first} to {last}", "IPv4", first, last, **more)


def told(*taken: tuple[Key, Taken]) -> list[str]:
    return [f"{each.at.key.name}: {each.what}" for each in twice(taken)]


def test_what_two_have_is_reported_at_the_later_one_of_the_site() -> None:
    assert [*twice([(A, span(1, 3)), (B, span(3, 5))])] == [
        Conflict(
            Spot(B, "nic"),
            "3 to 5 meets 1 to 3 of server/a",
            (Spot(A, "nic"),),
            "each needs its own",
            "change one of the two",
        )
    ]
    assert told((B, span(1, 3)), (A, span(1, 3))) == ["a: 1 to 3 is server/b's already"]
    assert told((A, span(3, 5)), (B, span(1, 3))) == ["b: 1 to 3 meets 3 to 5 of server/a"]
    assert told((A, span(1, 3)), (B, span(1, 3))) == ["b: 1 to 3 is server/a's already"]
    assert told((A, span(1, 3)), (B, span(4, 5))) == []


def test_a_range_is_compared_with_all_that_are_in_it() -> None:
    assert told((A, span(1, 9)), (B, span(2, 3)), (C, span(5, 6))) == [
        "b: 2 to 3 meets 1 to 9 of server/a",
        "c: 5 to 6 meets 1 to 9 of server/a",
    ]
    assert told((A, span(1, 3)), (B, span(1, 3)), (C, span(3, 3))) == [
        "b: 1 to 3 is server/a's already",
        "c: 3 to 3 meets 1 to 3 of server/b",
    ]
    assert told((A, span(1, 3)), (B, span(2, 9)), (C, span(8, 9))) == [
        "b: 2 to 9 meets 1 to 3 of server/a",
        "c: 8 to 9 meets 2 to 9 of server/b",
    ]


def test_two_names_of_one_owner_share_what_it_has() -> None:
    assert told((A, span(1, 1, owner="m")), (B, span(1, 1, owner="m"))) == []
    assert told((A, span(1, 1, owner="m")), (B, span(1, 1, owner="n"))) == ["b: 1 to 1 is server/a's already"]
    assert told((A, span(1, 1)), (B, span(1, 1, owner="n"))) == ["b: 1 to 1 is server/a's already"]


@pytest.mark.parametrize(
    ("one", "other", "stops"),
    [
        (("RoCE A", True), ("RoCE B", True), False),
        (("RoCE A", True), ("RoCE B", False), False),
        (("RoCE A", False), ("RoCE B", True), False),
        (("RoCE A", False), ("RoCE B", False), True),
        (("RoCE A", True), ("RoCE A", True), True),
        (("", True), ("RoCE B", True), True),
        (("RoCE A", True), ("", True), True),
    ],
)
def test_networks_that_never_meet_may_have_one_address_twice(
    one: tuple[str, bool], other: tuple[str, bool], stops: bool
) -> None:
    [found] = twice(
        [(key, span(1, 1, network=name, apart=apart)) for key, (name, apart) in ((A, one), (B, other))]
    )
    assert found.stops is stops
    assert (found.why, found.next) == (
        ("each needs its own", "change one of the two")
        if stops
        else ("the networks RoCE A and RoCE B must never be connected", "")
    )


INNER = Inner("pods", "10.244.0.0/24")
EDGES = around("10.244.0.0", "10.244.0.255")


@pytest.mark.parametrize(
    ("first", "last", "meets"),
    [
        (EDGES[0] - 1, EDGES[0] - 1, False),
        (EDGES[0] - 1, EDGES[0], True),
        (EDGES[1], EDGES[1] + 1, True),
        (EDGES[1] + 1, EDGES[1] + 1, False),
    ],
)
def test_a_network_inside_of_a_cluster_hides_a_machine_in_it_and_others_around_it_are_told(
    first: int, last: int, meets: bool
) -> None:
    hidden, near = span(first, last), span(1, 1, subnet=(first, last))
    assert [*covered([(A, INNER)], [(B, hidden), (C, near)])] == (
        [
            Conflict(
                Spot(A, "pods"),
                f"10.244.0.0/24 covers {first} to {last} of server/b",
                (Spot(B, "nic"),),
                "inside of the cluster these addresses are its own, so nothing there can reach that machine",
                "choose a network that nothing else uses",
            ),
            Conflict(
                Spot(A, "pods"),
                "10.244.0.0/24 overlaps the network of 1 to 1",
                (Spot(C, "nic"),),
                "addresses in it can't be reached from the cluster",
                stops=False,
            ),
        ]
        if meets
        else []
    )


def test_a_network_that_no_cluster_reaches_may_be_covered_unless_its_nodes_are_there() -> None:
    apart = span(*EDGES, apart=True)
    for inner, stops in ((INNER, False), (INNER._replace(nodes=True), True)):
        assert [each.stops for each in covered([(A, inner)], [(B, apart)])] == [stops]


def test_what_is_no_network_and_another_version_hides_nothing() -> None:
    v6 = Taken("nic", "fd00::1", "IPv6", *EDGES)
    assert [*covered([(A, Inner("pods", "auto"))], [(B, span(*EDGES))])] == []
    assert [each.others for each in covered([(A, INNER)], [(B, v6), (C, span(*EDGES))])] == [
        (Spot(C, "nic"),)
    ]


def test_a_conflict_is_shown_at_its_place_and_names_the_other_places() -> None:
    places = {(A, "nic"): Place(Path("s.yaml"), 3, 5), (B, "nic"): Place(Path("s.yaml"), 7, 5)}

    def text(found: Conflict, known: dict[Any, Place] = places) -> str:
        return str(found.located(lambda key, field: known.get((key, field))))

    found = Conflict(Spot(A, "nic"), "it meets b", (Spot(B, "nic"), Spot(C, "ip")), "why", "change it")
    assert text(found) == (
        "s.yaml:3:5: server/a: it meets b; why; see server/b at s.yaml:7:5, server/c at ip; change it"
    )
    assert text(found, {}) == (
        "server/a: server/a: it meets b; why; see server/b at nic, server/c at ip; change it"
    )
    inside = Conflict(Spot(A, "nic"), "it is wrong", inside=Place(Path("f.yaml"), 1, 1))
    assert text(inside) == "f.yaml:1:1: server/a: it is wrong"
