"""The site of the FlexDirect guide on the sandbox, whole: from empty, again, one thing moved, health, gone. By Ansible, so with --peers; what is decided is tried always."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kinds.lifecycle import apply, endings, made, plan, world

import bfinfra.sandbox
from bfinfra import app
from bfinfra.render import health as render
from bfinfra.sandbox import Running

SPECS = Path(__file__).parents[1] / "specs"
SITE = SPECS / "flexdirect.yaml"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    yield bfinfra.sandbox.start(SPECS / "worlds/flexdirect.yaml", tmp_path / "sandbox", pace=0)
    bfinfra.sandbox.stop(tmp_path / "sandbox")


def test_its_plan_sets_every_machine_up_before_it_is_listed_and_health_says_what_is_not_there(sandbox: Running) -> None:
    found = plan(SITE, sandbox)
    assert not found.problems and not found.unreadable
    waits = {str(item.key): {str(key) for key in item.waits_for} for item in found.items}
    assert waits["flexdirect_pool/v100"] >= {"flexdirect_host/v100", "linux_host/node-1"}
    examined = app.health(app.load(SITE, sandbox=sandbox), around=app.Setting(sandbox=sandbox))
    assert {each.machine: each.good for each in examined} == dict.fromkeys(("v100-1", "v100-2", "k80-1", "node-1", "node-2"), False)
    assert "0 of 5 machines are healthy enough" in render.text(examined)
    assert sandbox.tally()["written"] == 0


@pytest.mark.peers
def test_the_whole_site_lives(sandbox: Running) -> None:
    before = world(sandbox)
    first = apply(SITE, sandbox)
    assert made(first), endings(first)
    machines = sandbox.world()["linux"]
    for node in ("node-1", "node-2"):
        assert machines[node]["files"]["/etc/bitfusionio/servers.conf"].splitlines()[1:] == ["10.174.21.8", "10.174.21.9"]
        assert machines[node]["files"]["/etc/bitfusionio/K80_servers.conf"].splitlines()[1:] == ["10.172.31.44:56002"]
    written = sandbox.tally()["written"]
    assert set(endings(apply(SITE, sandbox)).values()) == {"kept"}
    assert sandbox.tally()["written"] == written
    examined = app.health(app.load(SITE, sandbox=sandbox), around=app.Setting(sandbox=sandbox))
    assert all(each.good for each in examined), render.text(examined)
    assert json.dumps(render.data("flexdirect", examined))
    sandbox.change({"machine": "node-2", "path": "/etc/bitfusionio/K80_servers.conf", "text": machines["node-2"]["files"]["/etc/bitfusionio/K80_servers.conf"].replace("44", "45")})
    (moved,) = plan(SITE, sandbox).pending
    assert [(change.field, change.now, change.wanted) for change in moved.changes] == [("on.node-2.K80_servers.conf", ["10.172.31.45:56002"], ["10.172.31.44:56002"])]
    assert made(apply(SITE, sandbox))
    gone = apply(SITE, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before
