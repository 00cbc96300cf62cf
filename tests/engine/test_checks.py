from __future__ import annotations

import json
import stat
import time
from dataclasses import replace

import pytest

from bfinfra.engine import checks, journal
from bfinfra.engine.checks import Memory
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.partial import Partial
from bfinfra.model.refs import Key

ONE = Drifted(key=Key("tank", "one"), cause=Cause.DRIFT, field="colour")
JUNK = {
    "version": '{"format_version": 2, "standing": ["tank/a"], "since": {}, "untold": [], "over": []}',
    "type": '{"format_version": 1, "standing": 4, "since": {}, "untold": [], "over": []}',
    "since": '{"since": {"a": "b"}}',
}
GONE = Drifted(key=Key("tank", "two"), cause=Cause.VANISHED)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path))
    return tmp_path / "bfinfra/s"


def report(*found: Drifted, existing: tuple[str, ...] = ()) -> Report:
    return Report("s", found, 0, existing=existing)


def test_what_was_kept_is_recalled_and_lies_where_only_its_owner_reads(home):
    checks.remember(checks.since(report(ONE, existing=("tank/one",)), Memory(), now=5.0), Memory())
    assert checks.recall("s") == Memory(frozenset({"tank/one"}), {ONE.identity: 5.0})
    assert stat.S_IMODE((home / "drift.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("spoiled", ["", "{", "[]", JUNK["version"], JUNK["type"], JUNK["since"]])
def test_what_is_spoiled_counts_as_nothing(home, spoiled):
    journal.folder("s")
    (home / "drift.json").write_text(spoiled)
    assert checks.recall("s") == Memory()


def test_what_lasts_keeps_its_first_time_and_is_not_new():
    first = checks.since(report(ONE), Memory(), now=5.0)
    again = checks.since(report(ONE), Memory(since={ONE.identity: 5.0}), now=9.0)
    assert (first.new, again.new, again.found[0].since, again.at) == ({ONE.identity}, frozenset(), 5.0, 9.0)


def test_every_later_check_knows_that_a_vanished_object_existed():
    memory = Memory()
    for found in (report(existing=("tank/two",)), report(GONE), report(GONE)):
        checks.remember(checks.since(found, memory), memory)
        memory = checks.recall("s")
        assert "tank/two" in checks.existed("s", memory)
    checks.remember(report(), memory)
    assert checks.existed("s", checks.recall("s")) == frozenset()


def test_what_an_apply_from_here_made_has_stood(home):
    lines = [
        ("tank/a", "create", "done"),
        ("tank/b", "create", "failed"),
        ("tank/c", "create", "done"),
        ("tank/c", "delete", "done"),
        ("tank/d", "keep", "kept"),
    ]
    journal.folder("s")
    (home / "journal.jsonl").write_text(
        "".join(
            json.dumps({"run": "r", "event": "Ended", "key": k, "action": a, "ending": e, "at": 1}) + "\n"
            for k, a, e in lines
        )
    )
    assert checks.existed("s", Memory()) == {"tank/a", "tank/d"}


def test_an_unreported_change_stays_to_be_reported_and_its_end_is_not_reported_if_its_start_was_not():
    memory = Memory()
    for reported, found, new, ended in (
        (False, report(ONE), {ONE.identity}, ()),
        (True, report(ONE), {ONE.identity}, ()),
        (False, report(), set(), (ONE.identity,)),
        (True, report(), set(), (ONE.identity,)),
        (True, report(), set(), ()),
        (False, report(ONE), {ONE.identity}, ()),
        (True, report(), set(), ()),
    ):
        seen = checks.since(found, memory)
        assert (seen.new, seen.ended) == (new, ended)
        checks.remember(seen, memory, reported=reported)
        memory = checks.recall("s")


@pytest.mark.parametrize(
    ("after", "existed"),
    [
        ([("Started", "delete", None)], False),  # the run was killed: the object may be gone
        ([("Started", "delete", None), ("Ended", "delete", "failed")], True),
        ([("Started", "delete", None), ("Ended", "delete", "still-waiting")], True),
        ([("Started", "delete", None), ("Ended", "delete", "done")], False),
        ([("Forgotten", None, None)], False),
        ([("Forgotten", None, None), ("Ended", "keep", "kept")], True),
        ([("Started", "delete", None), ("Started", "delete", None), ("Ended", "delete", "failed")], True),
        ([("Started", "delete", None), ("Started", "update", None), ("Ended", "update", "failed")], True),
        # a killed run deleted it, and it could not be made again
        ([("Started", "delete", None), ("Started", "create", None), ("Ended", "create", "failed")], False),
        ([("Started", "delete", None), ("Forgotten", None, None), ("Ended", "create", "failed")], False),
        ([("Started", "delete", None), ("Forgotten", None, None), ("Ended", "update", "failed")], False),
        ([("Started", "delete", None), ("Ended", "create", "blocked")], False),  # it could not even begin
        ([("Started", "delete", None), ("Ended", "delete", "done"), ("Ended", "update", "blocked")], False),
        (
            [
                ("Started", "delete", None),
                ("Ended", "delete", "failed"),
                ("Ended", "delete", "done"),
                ("Ended", "update", "failed"),
            ],
            False,
        ),
        (
            [
                ("Started", "delete", None),
                ("Ended", "delete", "failed"),
                ("Forgotten", None, None),
                ("Ended", "create", "failed"),
            ],
            False,
        ),
        ([("Started", "update", None)], True),
        ([("Planned", "delete", None)], True),
    ],
)
def test_what_a_run_of_this_site_deleted_or_somebody_forgot_is_not_missed(home, after, existed):
    journal.folder("s")
    lines = [("Ended", "create", "done"), *after]
    (home / "journal.jsonl").write_text(
        "".join(
            json.dumps({"run": "r", "event": e, "key": "tank/a", "action": a, "ending": n, "at": 1}) + "\n"
            for e, a, n in [(e, a or "", n or "") for e, a, n in lines]
        )
    )
    assert ("tank/a" in checks.existed("s", Memory())) is existed


def test_what_is_forgotten_is_no_longer_in_the_record_of_the_last_check(home):
    checks.remember(report(existing=("tank/a", "tank/b")), Memory())
    checks.forget("s", [Key("tank", "a")])
    assert checks.existed("s", checks.recall("s")) == {"tank/b"}
    assert checks.recall("s").existing == {"tank/b"}


def test_a_line_of_the_journal_without_a_resource_is_of_none(home):
    journal.folder("s")
    (home / "journal.jsonl").write_text(
        '{"run": "r", "event": "Ended", "action": "keep", "ending": "kept", "at": 1}\n'
    )
    assert checks.existed("s", Memory()) <= {""}


def test_what_a_deletion_of_something_never_seen_left_is_not_missed(home):
    journal.folder("s")
    lines = [
        {"event": "Started", "action": "delete"},
        {"event": "Ended", "action": "delete", "ending": "failed"},
    ]
    (home / "journal.jsonl").write_text(
        "".join(json.dumps({"run": "r", "key": "tank/a", "at": 1, **line}) + "\n" for line in lines)
    )
    assert checks.existed("s", Memory()) == frozenset()


def test_what_another_record_keeps_is_known_here_as_reported():
    checks.known("s", [ONE.identity], ["tank/b", "tank/a"], now=7.0)
    assert checks.recall("s") == Memory(frozenset({"tank/a", "tank/b"}), {ONE.identity: 7.0})


def test_what_is_recorded_without_a_time_is_of_now_however_much_it_is():
    checks.known("s", [f"{ONE.identity} {number:060}" for number in range(15_000)])
    assert {round(time.time() - at, -3) for at in checks.recall("s").since.values()} == {0}


def test_a_check_that_could_not_read_everything_ends_nothing_and_forgets_nothing():
    memory = Memory(frozenset({"tank/two"}), {ONE.identity: 5.0})
    blind = Report("s", (), 0, existing=("tank/a",), unreadable={"tank": "its yard is away"})
    seen = checks.since(blind, memory, now=9.0)
    assert (seen.ended, seen.new) == ((), frozenset())
    checks.remember(seen, memory)
    assert checks.recall("s") == Memory(frozenset({"tank/a", "tank/two"}), {ONE.identity: 5.0})


def test_a_check_of_a_part_says_nothing_of_what_is_new_or_ended():
    part = replace(report(ONE), partial=Partial((ONE.key,), frozenset({ONE.key}), 1))
    seen = checks.since(part, Memory(since={GONE.identity: 5.0}), now=9.0)
    assert (seen.new, seen.ended, seen.at, seen.found[0].since) == (frozenset(), (), 9.0, 9.0)


def test_what_the_site_ignores_is_not_new():
    ignored = replace(ONE, ignored="it is being repaired")
    assert checks.since(report(ignored), Memory(), now=5.0).new == frozenset()


def test_a_site_with_a_scope_of_its_own_is_kept_there(home):
    checks.remember(replace(report(existing=("tank/a",)), scope="t"), Memory())
    assert checks.recall("t").existing == {"tank/a"}
    assert checks.recall("s") == Memory()
