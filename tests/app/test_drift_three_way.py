"""`bfinfra drift` on the sandbox, three-way, as a user's next checks see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kinds.unmanaged import entry

import bfinfra
from bfinfra.sandbox import Running

SITE = """\
site: example
vcenter: {{server: vc.small.test, username: admin@small.test, password: {{env: VCENTER_PASSWORD}}, trust: {{ca_file: ca.pem}}}}
supervisor_namespace:
  team-a: {{cluster: compute, limits: {{memory: {memory}, cpu: 4GHz}}}}
{more}"""
IGNORE = (
    'drift: {ignore: [{address: "supervisor_namespace/*", field: limits, reason: a test, until: 2999-01-01}]}'
)


class Desk:
    """A site that is rewritten, applied and checked; the world that somebody else changes."""

    def __init__(self, path: Path, sandbox: Running) -> None:
        self.path, self.sandbox, self.context = path, sandbox, bfinfra.RunContext(sandbox=sandbox)

    def write(self, memory: str = "2GiB", more: str = "") -> None:
        self.path.write_text(SITE.format(memory=memory, more=more))

    def load(self) -> Any:
        return bfinfra.load(self.path, sandbox=self.sandbox)

    def check(self) -> list[tuple[str, str]]:
        found = bfinfra.drift(self.load(), context=self.context)
        bfinfra.remember(found)
        return [(str(each.cause), each.field) for each in found.found]

    def someone_sets(self, **limits: int) -> None:
        self.sandbox.change(
            {
                "address": "vc.small.test:443",
                "method": "PATCH",
                "path": "/api/vcenter/namespaces/instances/team-a",
                "body": {"resource_spec": limits},
            }
        )


@pytest.fixture
def desk(tmp_path: Path, sandbox: Running, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    found = Desk(tmp_path / "site.yaml", sandbox)
    found.write()
    assert bfinfra.apply(found.load(), context=found.context).ending == "done"
    return found


def test_a_site_just_applied_does_not_drift(desk):
    assert [desk.check() for _ in range(5)] == [[]] * 5


def test_changes_by_the_server_by_the_file_and_by_both_are_distinguished(desk):
    desk.someone_sets(memory_limit=4096)
    assert desk.check() == [("drift", "limits.memory")]
    desk.write(memory="3GiB")
    assert desk.check() == [("conflict", "limits.memory")]
    desk.someone_sets(memory_limit=2048)
    assert desk.check() == [("unapplied", "limits.memory")]
    desk.someone_sets(cpu_limit=1000)
    assert sorted(desk.check()) == [("drift", "limits.cpu"), ("unapplied", "limits.memory")]


def test_what_was_deleted_has_vanished_and_what_was_never_made_is_not_there(desk):
    desk.sandbox.change(
        {
            "address": "vc.small.test:443",
            "method": "DELETE",
            "path": "/api/vcenter/namespaces/instances/team-a",
        }
    )
    desk.write(more="  team-b: {cluster: compute}\n")
    assert sorted(desk.check()) == [("missing", ""), ("vanished", "")]


def test_what_somebody_made_in_its_place_is_unmarked(desk):
    entry("supervisor_namespace").plant(desk.sandbox, desk.path.parent, "team-b")
    desk.write(more="  team-b: {cluster: compute}\n")
    assert desk.check() == [("unmarked", "")]


def test_what_is_ignored_alarms_nobody(desk):
    desk.someone_sets(memory_limit=4096)
    desk.write(more=IGNORE)
    found = bfinfra.drift(desk.load(), context=desk.context)
    assert [each.field for each in found.found] == ["limits.memory"]
    assert found.alarming == ()
