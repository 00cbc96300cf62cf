"""What is done about a Site, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from bfinfra.operator.decide import (
    GRACE,
    NEVER,
    RETRY,
    Hold,
    Look,
    Refuse,
    Release,
    Stamp,
    Wait,
    decide,
    job_name,
    opened,
    period,
)
from bfinfra.operator.desired import FINALIZER, Desired
from bfinfra.operator.job import LARGEST, RESULT, SITE, Mould, _args, manifest, unfit
from bfinfra.operator.result import Outcome, Result

NOW = 1_800_000_000.0
WANTED = Desired("ns", "poc", "uid-1", 3, {"site": "poc"}, finalizers=(FINALIZER,))
GOOD = Result(Outcome.AGREED)


def look(
    wanted: Desired = WANTED, began: float = NOW - 10, result: Result | None = GOOD, **more: Any
) -> Look:
    return Look("poc-1", wanted.key, began, wanted.generation, **({"ended": began + 5} | more), result=result)


def test_nothing_is_made_before_the_finalizer_is_there() -> None:
    assert decide(replace(WANTED, finalizers=()), [], NOW) == Hold()


def test_a_new_site_is_looked_at_at_once() -> None:
    assert decide(WANTED, [], NOW) == Stamp(job_name(WANTED, 3600, opened("uid-1", 3600, NOW)), NOW)


def test_in_one_span_it_is_looked_at_once_and_again_when_the_next_begins() -> None:
    start = opened("uid-1", 3600, NOW)
    assert decide(WANTED, [look(began=start + 1)], NOW) == Wait(start + 3600)
    stamp = decide(WANTED, [look(began=start - 1)], NOW)
    assert stamp == Stamp(job_name(WANTED, 3600, start), start)


@pytest.mark.parametrize(
    "change",
    [{"generation": 4}, {"deleting": True}, {"approve": "a" * 16, "status": {"plan": {"digest": "a" * 16}}}],
)
def test_what_is_new_does_not_wait_for_the_next_span(change: dict[str, Any]) -> None:
    assert isinstance(decide(replace(WANTED, **change), [look()], NOW), Stamp)


def test_an_approval_of_another_plan_changes_nothing() -> None:
    assert replace(WANTED, approve="a" * 16, status={"plan": {"digest": "b" * 16}}).key == WANTED.key


def test_never_two_at_a_time_even_where_something_is_new() -> None:
    assert decide(replace(WANTED, generation=4), [look(ended=0, result=None)], NOW) == NEVER


def test_a_pods_last_words_are_waited_for() -> None:
    late = look(began=NOW - 8, ended=NOW - 3, result=None)
    assert decide(WANTED, [late], NOW) == Wait(NOW - 3 + GRACE)
    assert late.over(NOW + GRACE)
    assert late.found.outcome is Outcome.LOST


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (Outcome.AGREED, 3600),
        (Outcome.APPLIED, 3600),
        (Outcome.APPROVAL, 3600),
        (Outcome.INVALID, 3600),
        (Outcome.WAITING, 60),
        (Outcome.FAILED, RETRY),
        (Outcome.UNREADABLE, RETRY),
        (Outcome.LOST, RETRY),
    ],
)
def test_what_did_not_end_well_is_looked_at_sooner(outcome: Outcome, seconds: int) -> None:
    assert period(WANTED, look(result=Result(outcome))) == seconds


def test_a_thousand_sites_begin_at_times_of_their_own() -> None:
    starts = [int(opened(f"uid-{n}", 3600, NOW)) for n in range(1000)]
    a_minute = [
        sum(start // 60 == minute for start in starts) for minute in {start // 60 for start in starts}
    ]
    assert max(a_minute) < 40
    assert len(a_minute) >= 59


def test_a_suspended_site_is_left_alone() -> None:
    assert decide(replace(WANTED, suspend=True), [], NOW) == NEVER


def test_a_name_that_is_taken_and_a_site_that_is_too_large_are_refused() -> None:
    assert decide(WANTED, [], NOW, taken="ns/other") == Refuse("ns/other")
    assert decide(WANTED, [], NOW, unfit="too large") == Refuse("too large")


GONE = replace(WANTED, deleting=True)


def test_a_deleted_site_goes_when_all_is_destroyed_and_not_before() -> None:
    assert isinstance(decide(GONE, [look()], NOW), Stamp)
    assert (
        decide(
            GONE, [look(GONE, destroy=True, result=Result(Outcome.APPROVAL)), look(began=NOW - 99999)], NOW
        )
        != Release()
    )
    assert decide(GONE, [look(GONE, destroy=True, result=Result(Outcome.FAILED))], NOW) != Release()
    assert decide(GONE, [look(GONE, destroy=True, result=Result(Outcome.APPLIED))], NOW) == Release()
    assert decide(replace(GONE, finalizers=()), [], NOW) == NEVER


def test_a_site_that_shall_be_kept_or_whose_name_is_another_ones_goes_without_anything_destroyed() -> None:
    assert decide(replace(GONE, destroys=False), [], NOW) == Release()
    assert decide(GONE, [], NOW, taken="ns/other") == Release()
    assert decide(GONE, [], NOW, unfit="too large") == Refuse("too large")


BODY = {
    "metadata": {
        "name": "p.o.c",
        "namespace": "ns",
        "uid": "u",
        "generation": 2,
        "resourceVersion": "7",
        "annotations": {"bfinfra.io/approve": "0123456789abcdef"},
    },
    "spec": {
        "interval": "15m",
        "approval": "Always",
        "site": {"site": "poc", "vcenter": {"password": {"env": "PW"}, "version": "1.20"}},
        "claim": "memory",
        "env": {"PW": {"secretKeyRef": {"name": "s", "key": "pw"}}},
        "files": {
            "certs/ca.pem": {"configMapKeyRef": {"name": "c", "key": "ca"}},
            "k": {"secretKeyRef": {"name": "s", "key": "k"}},
        },
    },
    "status": {
        "plan": {"digest": "0123456789abcdef"},
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}],
        "drift": {"count": 1, "found": [{"address": "a/b", "field": "c d", "cause": "drift"}]},
    },
}


def test_a_job_carries_the_site_and_its_order_and_no_right_in_the_cluster() -> None:
    made = manifest(Desired.of(BODY), "poc-1", Mould("registry.test/bfinfra:1", ("pull",)))
    pod, meta = made["spec"]["template"]["spec"], made["spec"]["template"]["metadata"]
    assert yaml.safe_load(meta["annotations"][SITE]) == BODY["spec"]["site"]
    assert pod["containers"][0]["args"] == [
        "operator",
        "job",
        "--site",
        "/site/site.yaml",
        "--variables",
        "/variables",
        "--own",
        "/own/site",
        "--result",
        RESULT,
        "--approval",
        "Always",
        "--approved",
        "0123456789abcdef",
        "--stood",
        "--known=a/b c d drift",
    ]
    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod
    assert [each["name"] for each in pod["containers"][0]["env"]] == ["BFINFRA_STATE_HOME", "HOME", "TMPDIR"]
    assert pod["volumes"][1]["projected"]["sources"] == [
        {"secret": {"name": "s", "items": [{"key": "pw", "path": "PW"}]}}
    ]
    assert pod["volumes"][0]["projected"]["sources"][1:] == [
        {"configMap": {"name": "c", "items": [{"key": "ca", "path": "certs/ca.pem"}]}},
        {"secret": {"name": "s", "items": [{"key": "k", "path": "k"}]}},
    ]
    assert pod["volumes"][3] == {"name": "state", "persistentVolumeClaim": {"claimName": "memory"}}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert made["spec"]["ttlSecondsAfterFinished"] > 900  # until then it tells that it was looked at


def test_what_the_kubelet_would_expand_reaches_the_job_as_it_was_written() -> None:
    found = [{"address": "a/$(HOME)", "field": "b$$c", "cause": "drift"}]
    wanted = Desired.of({**BODY, "status": {"drift": {"count": 1, "found": found}}})
    (word,) = (each for each in _args(wanted) if each.startswith("--known="))
    assert word == "--known=a/$$(HOME) b$$$$c drift"


def test_a_job_that_destroys_says_so_and_nothing_of_drift() -> None:
    gone = Desired.of({**BODY, "metadata": {**BODY["metadata"], "deletionTimestamp": "2027-01-01T00:00:00Z"}})
    assert (
        manifest(gone, "poc-1", Mould("i"))["spec"]["template"]["spec"]["containers"][0]["args"][-1]
        == "--destroy"
    )


def test_a_site_larger_than_annotations_may_be_is_reported() -> None:
    assert unfit(WANTED) == ""
    assert "split the site" in unfit(replace(WANTED, size=LARGEST + 1))
