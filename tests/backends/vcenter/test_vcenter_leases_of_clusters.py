"""Leases of clusters: one run holds one, the others know who; an abandoned one is taken over by its key, and its
former holder stops before the next write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, attributes
from bfinfra.backends.vcenter.leases import PREFIX, STALE, UNSIGNED, Leases
from bfinfra.model import process
from bfinfra.model.errors import Conflict
from bfinfra.sandbox import Running

CLUSTER = "domain-c1"
ELSEWHERE = "far/1a2b/4711"


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vcenter(sandbox: Running, tmp_path: Path) -> Iterator[VCenter]:
    sandbox.reset()
    (tmp_path / "site.yaml").write_text(
        "site: s\nvcenter: {server: vc.small.test, username: admin@small.test, password: {env: "
        "VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}\n"
    )
    settings = bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox).vcenter
    assert settings is not None
    with contextlib.closing(VCenter(settings, Transport(route=sandbox.lookup))) as made:
        yield made


@pytest.fixture
def run(vcenter: VCenter, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Leases]]:
    """Makes the leases of one more run, on one more machine."""
    monkeypatch.setattr(process, "me", lambda: ELSEWHERE)
    monkeypatch.setattr(process, "ended", lambda _: False)
    made: list[Leases] = []

    def another() -> Leases:
        made.append(Leases(vcenter.session, clock))
        return made[-1]

    yield another
    for each in made:
        each.close()


def there(vcenter: VCenter) -> list[str]:
    return [name for name in vcenter.session.read(attributes.defined).values() if name.startswith(PREFIX)]


def test_one_of_two_gets_it_and_the_other_knows_who_has_it(run, vcenter: VCenter) -> None:
    first, second = run(), run()
    first.take(CLUSTER, "host-1")
    with pytest.raises(Conflict, match="another run restarts hosts of the same cluster"):
        second.take(CLUSTER, "host-2")
    second.read()
    first.read()
    assert str(second.other(CLUSTER)).startswith("process 4711 on far since 20")
    assert first.other(CLUSTER) is None
    assert second.other("domain-c2") is None


def test_it_is_held_until_its_last_user_leaves(run, vcenter: VCenter) -> None:
    first, second = run(), run()
    first.take(CLUSTER, "host-1")
    first.take(CLUSTER, "host-2")
    first.leave(CLUSTER, "host-1")
    assert there(vcenter) == [PREFIX + CLUSTER]
    first.leave(CLUSTER, "host-2")
    assert there(vcenter) == []
    second.take(CLUSTER, "host-2")


def test_a_run_that_ends_gives_back_all(run, vcenter: VCenter) -> None:
    first = run()
    first.take(CLUSTER, "host-1")
    first.take("domain-c2", "host-2")
    assert len(there(vcenter)) == 2
    first.close()
    assert there(vcenter) == []


def test_one_whose_count_stands_still_is_taken_over_and_its_holder_stops(run, clock: Clock) -> None:
    first, second = run(), run()
    first.take(CLUSTER, "host-1")
    second.read()
    clock.now += STALE - 1
    second.read()
    assert second.other(CLUSTER) is not None
    clock.now += 1
    assert second.other(CLUSTER) is None
    second.take(CLUSTER, "host-1")
    with pytest.raises(Conflict, match="was taken over by another run"):
        first.confirm(CLUSTER)
    second.confirm(CLUSTER)


def test_one_that_is_renewed_is_not_taken_over_however_old(run, clock: Clock) -> None:
    first, second = run(), run()
    first.take(CLUSTER, "host-1")
    for _ in range(3):
        second.read()
        clock.now += STALE - 1
        first.confirm(CLUSTER)
        second.read()
    assert second.other(CLUSTER) is not None
    with pytest.raises(Conflict):
        second.take(CLUSTER, "host-1")


def test_of_two_that_take_over_the_same_one_gets_it(run, clock: Clock, vcenter: VCenter) -> None:
    first, second, third = run(), run(), run()
    first.take(CLUSTER, "host-1")
    for each in (second, third):
        each.read()
    clock.now += STALE
    second.take(CLUSTER, "host-1")
    with pytest.raises(Conflict):
        third.take(CLUSTER, "host-1")  # it removes the old one, by its key
    second.confirm(CLUSTER)
    assert there(vcenter) == [PREFIX + CLUSTER]


def test_one_that_was_never_signed_is_abandoned_sooner(run, clock: Clock, vcenter: VCenter) -> None:
    run_once = vcenter.session.write
    run_once(
        lambda content: content.customFieldsManager.AddCustomFieldDef(PREFIX + CLUSTER, None, None, None)
    )
    second = run()
    second.read()
    assert str(second.other(CLUSTER)) == "another run"
    clock.now += UNSIGNED
    second.take(CLUSTER, "host-1")
    assert there(vcenter) == [PREFIX + CLUSTER]


def test_one_of_a_process_of_this_machine_that_has_ended_is_abandoned_at_once(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = run(), run()
    first.take(CLUSTER, "host-1")
    second.read()
    assert second.other(CLUSTER) is not None
    monkeypatch.setattr(process, "ended", lambda who: who == ELSEWHERE)
    assert second.other(CLUSTER) is None
    second.take(CLUSTER, "host-1")


def test_a_run_that_writes_removes_an_abandoned_one_that_it_does_not_need(
    run, vcenter: VCenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run().take(CLUSTER, "host-1")
    second, third, fourth = run(), run(), run()
    second.read()
    second.close(tidy=True)
    assert there(vcenter) == [PREFIX + CLUSTER], "its holder lives"
    monkeypatch.setattr(process, "ended", lambda who: who == ELSEWHERE)
    third.read()
    third.close()
    assert there(vcenter) == [PREFIX + CLUSTER], "it only reads"
    fourth.read()
    fourth.close(tidy=True)
    assert there(vcenter) == []


@pytest.mark.parametrize("method", ["AddCustomFieldDef", "SetField"])
def test_who_may_not_hold_one_goes_on_and_is_told_once(
    run, vcenter: VCenter, sandbox: Running, method: str
) -> None:
    sandbox.faults({"api": "vcenter", "method": method, "do": {"soap": "NoPermission"}})
    try:
        first = run()
        first.take(CLUSTER, "host-1")
        first.confirm(CLUSTER)
        assert "could not be excluded: the account may not define custom attributes" in first.warning()
        assert first.warning() == ""
        first.leave(CLUSTER, "host-1")
    finally:
        sandbox.clear_faults()
    assert there(vcenter) == []


def test_who_holds_one_is_told_nothing(run) -> None:
    first = run()
    first.take(CLUSTER, "host-1")
    assert first.warning() == ""


def test_what_another_wrote_into_it_is_shown_in_one_line_without_control_characters(
    run, vcenter: VCenter
) -> None:
    def write(content) -> None:
        manager = content.customFieldsManager
        key = manager.AddCustomFieldDef(PREFIX + CLUSTER, None, None, None).key
        manager.SetField(content.rootFolder, key, "by=a\u200bb/c/\u202e4711 since=\u20282026 n=1")

    vcenter.session.write(write)
    second = run()
    second.read()
    shown = str(second.other(CLUSTER))
    assert shown.isprintable()
    assert "4711" in shown
