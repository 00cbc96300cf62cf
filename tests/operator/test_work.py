"""What a Job of the operator does, on the sandbox: look, apply what may be applied, say what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bfinfra
from bfinfra.app import context
from bfinfra.engine.retry import RetryPolicy
from bfinfra.operator.approval import Approval
from bfinfra.operator.declared import mounted
from bfinfra.operator.result import Outcome, Result
from bfinfra.operator.work import Order, work
from bfinfra.sandbox import Running

SITE = """\
site: example
vcenter: {{server: vc.small.test, username: admin@small.test, password: {{env: VCENTER_PASSWORD}}, trust: {{ca_file: ca.pem}}}}
supervisor_namespace:
  team-a: {{cluster: compute, limits: {{memory: {memory}}}, protect: {protect}}}
{more}"""
SECOND = "  team-b: {cluster: compute}\n"


class Desk:
    def __init__(self, path: Path, sandbox: Running) -> None:
        self.path, self.sandbox, self.context = path, sandbox, bfinfra.RunContext(sandbox=sandbox)
        self.reported: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def write(self, memory: str = "2GiB", more: str = "", protect: str = "false") -> None:
        self.path.write_text(SITE.format(memory=memory, more=more, protect=protect))

    def look(self, **order: Any) -> Result:
        return work(self.load, Order(**order), self.context)

    def load(self) -> bfinfra.Site:
        return mounted(self.path).load(self.path.parents[1] / "own", self.sandbox)

    def someone(self, method: str, **body: Any) -> None:
        self.sandbox.change(
            {
                "address": "vc.small.test:443",
                "method": method,
                "path": "/api/vcenter/namespaces/instances/team-a",
                **({"body": body} if body else {}),
            }
        )


@pytest.fixture
def desk(tmp_path: Path, sandbox: Running, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Each look is on a machine of its own, as Jobs are."""
    (tmp_path / "site").mkdir()
    found = Desk(tmp_path / "site/site.yaml", sandbox)
    found.write()
    real, count = Desk.look, iter(range(100))

    def look(self: Desk, **order: Any) -> Result:
        monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / f"state-{next(count)}"))
        return real(self, **order)

    monkeypatch.setattr(Desk, "look", look)
    monkeypatch.setattr(
        "bfinfra.operator.work.notify",
        lambda _, report, *, context: (
            found.reported.append((tuple(sorted(report.new)), tuple(report.ended)))
            if report.new or report.ended
            else None
        ),
    )
    return found


def test_a_new_site_is_made_and_then_agrees_and_no_drift_is_reported(desk: Desk) -> None:
    first, second = desk.look(), desk.look(existed=True)
    assert (first.outcome, first.corrected, first.resources) == (Outcome.APPLIED, 0, 1)
    assert first.writes > 0
    assert (second.outcome, second.writes, second.drifted) == (Outcome.AGREED, 0, 0)
    assert second.certificates["vc.small.test:443"] > 1.7e9
    assert desk.reported == []


def test_what_changed_on_the_server_is_put_back_and_reported_once(desk: Desk) -> None:
    desk.look()
    desk.someone("PATCH", resource_spec={"memory_limit": 4096})
    found = desk.look(existed=True)
    assert (found.outcome, found.corrected, found.drifted) == (Outcome.APPLIED, 1, 0)
    began = "supervisor_namespace/team-a limits.memory drift"
    assert desk.reported == [((began,), ()), ((), (began,))]


def test_where_everything_needs_approval_drift_is_only_reported_and_once(desk: Desk) -> None:
    desk.look()
    desk.someone("PATCH", resource_spec={"memory_limit": 4096})
    first = desk.look(approval=Approval.ALWAYS, existed=True)
    again = desk.look(
        approval=Approval.ALWAYS,
        existed=True,
        known=tuple(f"{each.address} {each.field} {each.cause}" for each in first.moved),
    )
    assert (first.outcome, first.drifted, first.planned, first.writes) == (Outcome.APPROVAL, 1, 1, 0)
    assert again.digest == first.digest
    assert len(desk.reported) == 1


def test_an_object_that_existed_and_is_gone_is_drift(desk: Desk) -> None:
    desk.look()
    desk.someone("DELETE")
    found = desk.look(approval=Approval.ALWAYS, existed=True)
    assert [(each.address, each.cause) for each in found.moved] == [
        ("supervisor_namespace/team-a", "vanished")
    ]


def test_what_would_be_deleted_waits_for_approval_of_exactly_that(desk: Desk) -> None:
    desk.write(more=SECOND)
    desk.look()
    desk.write()
    waiting = desk.look()
    assert (waiting.outcome, [(each.address, each.action) for each in waiting.changes]) == (
        Outcome.APPROVAL,
        [("supervisor_namespace/team-b", "delete")],
    )
    assert desk.look(approved="0000000000000000").outcome is Outcome.APPROVAL
    done = desk.look(approved=waiting.digest)
    assert (done.outcome, done.approved) == (Outcome.APPLIED, waiting.digest)


def test_nothing_is_destroyed_without_a_word_and_a_protected_site_never(desk: Desk) -> None:
    desk.write(protect="true")
    desk.look()
    kept = desk.look(destroy=True, approval=Approval.NEVER)
    assert kept.outcome is Outcome.FAILED
    assert "protected" in kept.why
    desk.write()
    desk.look()
    waiting = desk.look(destroy=True)
    assert (waiting.outcome, waiting.writes) == (Outcome.APPROVAL, 0)
    assert desk.look(destroy=True, approved=waiting.digest).outcome is Outcome.APPLIED


def test_what_may_differ_for_a_while_is_not_put_back_by_the_way(desk: Desk) -> None:
    desk.look()
    desk.someone("PATCH", resource_spec={"memory_limit": 4096})
    ignore = (
        'drift: {ignore: [{address: "supervisor_namespace/*", field: limits, reason: a test, until: '
        "2999-01-01}]}\n"
    )
    desk.write(more=ignore)
    assert desk.look(existed=True).outcome is Outcome.AGREED
    desk.write(more=SECOND + ignore)
    assert desk.look().outcome is Outcome.APPROVAL


def test_a_site_that_is_wrong_is_a_result_too(desk: Desk) -> None:
    desk.path.write_text("site: example\nsupervisor_namespaces: {}\n")
    found = desk.look()
    assert found.outcome is Outcome.INVALID
    assert "there is no kind supervisor_namespaces" in found.why


def test_a_server_that_can_not_be_reached_is_unreadable_and_nothing_is_done(desk: Desk) -> None:
    desk.path.write_text(
        "site: example\nkubernetes_cluster: {one: {kubeconfig: {file: one.kubeconfig}}}\nnamespace: {a: "
        "{cluster: one}}\n"
    )
    (desk.path.parent / "one.kubeconfig").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, "
        "user: u}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:9'}}]\nusers: [{name: u, user: "
        "{token: abc}}]\n"
    )
    found = work(desk.load, Order(), replace(context.LIVE, retry=RetryPolicy(attempts=1, lasts=0)))
    assert (found.outcome, found.writes) == (Outcome.UNREADABLE, 0)
    assert "127.0.0.1:9" in found.why
