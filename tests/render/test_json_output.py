"""What programs read."""

from __future__ import annotations

import json
from pathlib import Path

from render_samples import CLUSTER

from bfinfra.model.errors import Place, Problem, SiteError
from bfinfra.render import data


def test_a_plan_is_one_document_with_a_version_and_sizes_in_bytes(plan):
    found = json.loads(data.text(data.plan(plan)))
    assert (found["format_version"], found["type"], found["site"]) == (1, "plan", "singapore-poc")
    assert found["summary"] == {"create": 1, "keep": 1, "update": 2, "replace": 0, "delete": 1, "read": 0}
    assert found["items"][1] == {
        "address": "supervisor_namespace/cnasg",
        "kind": "supervisor_namespace",
        "name": "cnasg",
        "action": "create",
        "disruption": "none",
        "follows": [],
        "changes": [
            {"field": "limits.cpu", "now": None, "wanted": 48000},
            {"field": "limits.memory", "now": None, "wanted": 412316860416},
            {"field": "vm_classes", "now": None, "wanted": ["best-effort-xlarge"]},
        ],
        "steps": [
            {
                "step": "Create",
                "title": "Create the namespace cnasg on the cluster compute",
                "fields": {"name": "cnasg", "cluster": "compute"},
                "changes": found["items"][1]["changes"],
                "disruption": "none",
                "destructive": False,
                "why": "",
            }
        ],
        "waits_for": [],
        "because": {},
        "contents": [],
        "held": None,
    }
    assert found["items"][3]["changes"][1]["wanted"] == {"later": ["tanzu_cluster/cluster-01", "digest"]}


def test_plan_lines_are_items_then_the_sum(plan, broken):
    lines = [json.loads(data.line(each)) for each in data.plan_lines(plan)]
    assert [each["type"] for each in lines] == ["item"] * 5 + ["plan"]
    assert "items" not in lines[-1]
    last = list(data.plan_lines(broken))[-1]
    assert last["unreadable"] == [{"address": "token_secret", "why": "cluster-01 does not answer"}]
    assert last["warnings"][0]["what"] == "the certificate ends in 9 days"


def test_a_spot_in_a_file_is_an_object():
    assert data.problem(
        Problem("wrong", Place(Path("site.yaml"), 12, 5, "secret: hunter2"), "why", "next")
    ) == {
        "what": "wrong",
        "where": {"file": "site.yaml", "line": 12, "column": 5},
        "why": "why",
        "next": "next",
    }


def test_an_error_names_its_class():
    assert data.error(SiteError("a", "b")) == {
        "format_version": 1,
        "type": "error",
        "error": "SiteError",
        "problems": [{"what": w, "where": "", "why": "", "next": ""} for w in ("a", "b")],
    }


def test_events_are_lines_with_utc_times(events):
    lines = [data.line(data.event(each)) for each in events]
    assert (
        lines[0]
        == '{"format_version":1,"type":"started","at":"2026-02-03T04:05:00.000Z","address":"supervisor_namespace/cnasg","action":"create"}'
    )
    assert json.loads(lines[2])["problem"] == {
        "what": "the server is busy",
        "where": "",
        "why": "",
        "next": "",
    }
    assert json.loads(lines[-1])["progress"] == {
        "what": "disk-0.vmdk",
        "done": 600 * 2**20,
        "total": 1000 * 2**20,
    }
    assert [json.loads(each)["type"] for each in lines] == [
        "started",
        "step_begun",
        "step_ended",
        "step_begun",
        "step_ended",
        "settling",
        "ended",
        "ended",
        "step_begun",
        "progressed",
        "progressed",
    ]
    assert not any("\n" in each for each in lines)


def test_an_outcome_holds_each_ending_and_the_steps_that_ran(outcome, events):
    found = data.outcome(outcome, events)
    assert (found["ending"], found["writes"], found["requests"], found["seconds"]) == (
        "failed",
        24,
        180,
        723.0,
    )
    assert found["resources"][1] == {
        "address": "supervisor_namespace/cnasg",
        "action": "create",
        "ending": "done",
        "seconds": 20,
        "problem": None,
        "note": "https://172.24.206.1\nlogged: run on 2 GPUs",
        "steps": [{"title": "Create the namespace cnasg", "number": 1, "seconds": 3.5, "problem": None}],
    }
    assert found["resources"][2]["address"] == str(CLUSTER)
