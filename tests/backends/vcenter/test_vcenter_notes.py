"""Notes on hosts and clusters: the last one takes the attribute's definition along, whoever else empties
theirs meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from bfinfra.backends.vcenter import attributes, cluster_notes, hosts
from bfinfra.backends.vcenter.cluster_notes import ClusterNotes
from bfinfra.backends.vcenter.hosts import Hosts
from bfinfra.model.errors import Missing, Rejected


@pytest.mark.parametrize(
    ("looks", "drops"),
    [
        ([{"a": ("host-1", "x")}], [True]),
        (
            [{"a": ("host-1", "x"), "b": ("host-2", "y")}, {"a": ("host-1", ""), "b": ("host-2", "y")}],
            [False],
        ),
        (
            [{"a": ("host-1", "x"), "b": ("host-2", "y")}, {"a": ("host-1", ""), "b": ("host-2", "")}],
            [False, True],
        ),
    ],
    ids=["alone", "another stays", "another went meanwhile"],
)
def test_the_definition_goes_with_the_last_note(monkeypatch: pytest.MonkeyPatch, looks, drops) -> None:
    done: list[bool] = []
    monkeypatch.setattr(hosts, "_host", lambda _content, moid: moid)
    monkeypatch.setattr(hosts.attributes, "drop", lambda _content, _host, _name, *, last: done.append(last))
    monkeypatch.setattr(Hosts, "notes", lambda _self, _name: looks.pop(0))
    there = Hosts(SimpleNamespace(write=lambda act: act(None)), None)
    there.drop_attribute("host-1", "bfinfra")
    assert (done, looks) == (drops, [])


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("fault", [Missing, Rejected])
def test_a_definition_that_another_took_along_in_between_is_no_error(
    monkeypatch: pytest.MonkeyPatch, fault, last
) -> None:
    def gone(*_):
        raise fault("there is no custom attribute 101")

    content = SimpleNamespace(customFieldsManager=SimpleNamespace(RemoveCustomFieldDef=gone, SetField=gone))
    looks = [{101: "bfinfra"}, {}]
    monkeypatch.setattr(attributes, "defined", lambda _content: looks.pop(0))
    attributes.drop(content, "host-1", "bfinfra", last=last)
    looks = [{101: "bfinfra"}, {101: "bfinfra"}]
    with pytest.raises(fault):
        attributes.drop(content, "host-1", "bfinfra", last=last)


def test_hosts_of_a_run_go_one_after_the_other_so_that_only_the_last_one_is_emptied_with_its_definition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hosts, "_host", lambda _content, moid: moid)
    monkeypatch.setattr(Hosts, "notes", lambda there, _name: there.look())
    there = Hosts(SimpleNamespace(write=lambda act: act(None)), None)
    assert emptied(monkeypatch, there, there.drop_attribute) == [False, True]


def test_clusters_of_a_run_go_one_after_the_other_so_that_only_the_last_one_is_emptied_with_its_definition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_notes, "_cluster", lambda _content, moid: moid)
    monkeypatch.setattr(ClusterNotes, "read", lambda there, _name, *, everyone, texts=(): there.look())
    there = ClusterNotes(SimpleNamespace(write=lambda act: act(None)), SimpleNamespace())
    assert emptied(monkeypatch, there, there.drop) == [False, True]


def emptied(monkeypatch: pytest.MonkeyPatch, there: Any, drop: Callable[[str, str], None]) -> list[bool]:
    """Whether each of two that go at once takes the definition along, in the order that they went in."""
    notes, done = {"a": ("one-1", "x"), "b": ("one-2", "y")}, []

    def write(_content, which, _name, *, last: bool) -> None:
        done.append(last)
        notes.update({name: (moid, "") for name, (moid, _) in notes.items() if moid == which})

    def look():
        found = dict(notes)
        time.sleep(0.02)  # long enough for the other to look as well
        return found

    there.look = look
    monkeypatch.setattr(attributes, "drop", write)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda moid: drop(moid, "bfinfra"), ["one-1", "one-2"]))
    return done
