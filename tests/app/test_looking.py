"""What a watch reads when something, or nothing, was reported."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from bfinfra.app.following import Arrivals
from bfinfra.app.looking import Looking
from bfinfra.backends.vcenter.changes import Change
from bfinfra.model.refs import Key

ONE = Key("server", "one")
OF_ONE, OF_TWO = (frozenset({f"bfinfra:1 site=s address=server/{name}"}) for name in ("one", "two"))


class Watched:
    """Notes what is read. `unread`: what the next looks find unreadable; `having`: the ids of machines."""

    def __init__(self, *unread: frozenset[str]) -> None:
        self.kinds = dict.fromkeys(("cluster", "namespace"), SimpleNamespace(followed=False))
        self.desired, self.observed = SimpleNamespace(wanted={}), SimpleNamespace(states={})
        self.unread, self.read = [*unread], list[object]()
        self.having: dict[Key, str] = {}

    @property
    def unread_kinds(self) -> frozenset[str]:
        return self.unread.pop(0) if len(self.unread) > 1 else self.unread[0]

    def in_order(self, some: object) -> list[str]:
        return sorted(self.kinds)

    def naming(self, ids: Iterable[str]) -> set[Key]:
        return {key for key, moid in self.having.items() if moid in ids}

    def look(self, keys: list[Key]) -> frozenset[Key]:
        """What is looked at is gone."""
        self.read += keys
        for key in keys:
            self.observed.states.pop(key, None)
        return frozenset()

    def survey(self, kinds: frozenset[str]) -> frozenset[Key]:
        self.read += sorted(kinds)
        return frozenset()

    def behind(self, kinds: frozenset[str]) -> frozenset[str]:
        return frozenset({"namespace"}) if "cluster" in kinds else frozenset()

    def dependants(self, moved: frozenset[Key]) -> frozenset[str]:
        return frozenset({"token_secret"}) if any(key.kind == "namespace" for key in moved) else frozenset()

    def words(self) -> frozenset[str]:
        return frozenset()

    def decide(self, moved: object) -> None:
        self.read.append("decided")


def looking(watched: Watched) -> Looking:
    clusters = SimpleNamespace(following_all=nullcontext)
    given: Any = watched, clusters, SimpleNamespace(extend=lambda: False)
    return Looking(*given, 3600)


def test_at_the_start_only_what_the_site_has_is_read_again() -> None:
    watched = Watched(frozenset())
    watched.kinds = dict.fromkeys(("namespace", "mpi_job", "workload"), SimpleNamespace(followed=False))
    watched.desired.wanted = {Key("namespace", "team-a"): None}
    watched.observed.states = {Key("workload", "left-behind"): None}
    looking(watched).start()
    assert watched.read == ["namespace", "workload"]


def test_while_nothing_changes_nothing_is_looked_at() -> None:
    watched = Watched(frozenset())
    assert not looking(watched).at(Arrivals())
    assert watched.read == []


def test_a_changed_resource_is_read_alone() -> None:
    watched = Watched(frozenset())
    key = Key("namespace", "team-a")
    assert looking(watched).at(Arrivals(keys=frozenset({key})))
    assert watched.read == [key, "decided"]


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (Change("modify", "VirtualMachine", "vm-1", words=OF_ONE), [ONE, "decided"]),
        (Change("modify", "VirtualMachine", "vm-1", words=OF_TWO), ["server", "decided"]),
        (Change("enter", "VirtualMachine", "vm-2", words=OF_ONE), ["server"]),
        (Change("modify", "VirtualMachine", "vm-2", words=frozenset({"other"})), []),
    ],
    ids=["its own mark", "another's mark", "another machine with its mark", "not of the site"],
)
def test_all_machines_are_read_where_one_may_have_become_the_sites(change: Change, read: list[Any]) -> None:
    watched = Watched(frozenset())
    watched.kinds, watched.having = {"server": SimpleNamespace(followed=True)}, {ONE: "vm-1"}
    looking(watched).at(Arrivals(changes=(change,)))
    assert watched.read == read


def test_what_is_behind_a_kind_that_can_be_read_again_is_read_before_anything_is_decided() -> None:
    unread = frozenset({"cluster"})
    watched = Watched(unread, unread, frozenset())
    key = Key("cluster", "other")
    assert looking(watched).at(Arrivals(keys=frozenset({key})))
    assert watched.read == [key, "namespace", "decided"]


def test_what_may_be_in_a_namespace_that_is_gone_is_read_though_nothing_of_it_was_reported() -> None:
    watched, key = Watched(frozenset()), Key("namespace", "team-a")
    watched.kinds = dict.fromkeys(("namespace", "token_secret"), SimpleNamespace(followed=False))
    watched.observed.states = {key: None}
    looks = looking(watched)
    assert looks.at(Arrivals(keys=frozenset({key})))
    looks.at(Arrivals())
    assert watched.read == [key, "decided", "token_secret"]
    watched.read.clear()
    assert looks.at(Arrivals(keys=frozenset({key})))
    looks.at(Arrivals())
    assert watched.read == [key, "decided"], "it was not there before either"


def test_what_can_be_read_again_is_no_longer_said_to_be_unreadable_though_the_site_has_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bfinfra.app.polling.pause", lambda failures: 0.0)
    unread = frozenset({"namespace"})
    watched = Watched(unread, unread, unread, frozenset())
    looks = looking(watched)
    looks.at(Arrivals())
    assert looks.at(Arrivals())
    assert watched.read == ["namespace", "decided"]
