"""Two runs and one host: what the site began stands apart from what was applied, and one run at a time begins."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from amid import Amid
from kinds.by_hand import administrator
from kinds.gpu_host.test_gpu_host import AROUND, MARK, ONE, TWO, card, host, spec
from kinds.lifecycle import EVERYTHING, EXAMPLES, KILLED, QUICK, apply, drift, endings, kill_at, made, plan

import bfinfra
from bfinfra.backends.vcenter.esxi import Lease
from bfinfra.backends.vcenter.leases import PREFIX
from bfinfra.engine.apply import Options
from bfinfra.kinds.vcenter.base.begun import Begun
from bfinfra.kinds.vcenter.gpu_host.kind import GpuHost
from bfinfra.kinds.vcenter.gpu_host.state import ATTRIBUTE, BEGUN, GpuHostNote, read
from bfinfra.model.events import StepBegun
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import Ready
from bfinfra.sandbox import Running

SITE = EXAMPLES["gpu_host"]
IF_NEEDED = spec(reboot="if_needed")
COMMITTED = GpuHostNote(MARK.committed(IF_NEEDED.applied()), {ONE: False})
OTHER = Lease(101, "far/1a2b/4711", "2026-01-01T00:00:00Z", "7")
OWED = (card(ONE, on=True, active=False), card(TWO, on=True))
DONE = (card(ONE, on=True), card(TWO, on=True))


def seen(note: GpuHostNote, begun: Begun | None, *cards: Any, lease: Lease | None = None, **more: Any) -> Any:
    """A host with both attributes."""
    attributes = {ATTRIBUTE: note.encode()} | ({BEGUN: begun.encode()} if begun else {})
    return read(replace(host(*cards).detail, attributes=attributes, **more), "farm", lease)


def steps(state: Any, wanted: Any = IF_NEEDED) -> list[str]:
    return [type(step).__name__ for step in GpuHost.steps("esx1", wanted, state, AROUND)]


def asked(state: Any, wanted: Any = IF_NEEDED) -> Any:
    kind = object.__new__(GpuHost)
    kind._machines = frozenset()
    kind._vcenter = SimpleNamespace(leases=SimpleNamespace(warning=lambda: ""))
    return kind.ready(wanted, state)


def test_what_was_begun_is_ended_whatever_another_run_has_noted_since() -> None:
    begun = Begun(MARK, "2025-12-31")
    assert steps(seen(COMMITTED, begun, *DONE, maintenance=True)) == ["Leave"]
    assert steps(seen(COMMITTED, begun, *DONE, maintenance=True), None)[:1] == ["Leave"]
    assert steps(seen(COMMITTED, None, *DONE, maintenance=True)) == [], "somebody else's maintenance mode"


@pytest.mark.parametrize("stay", [True, False])
def test_what_was_begun_is_read_as_it_was_written(stay: bool) -> None:
    begun = Begun(MARK, "2026-01-01T00:00:00+00:00", stay)
    assert Begun.decode(begun.encode()) == begun
    assert Begun.decode("by hand") is None


def test_what_the_release_before_has_begun_is_ended() -> None:
    note = replace(COMMITTED, reboot="from:2025-12-31:stay")
    state = seen(note, None, *DONE, maintenance=True)
    assert state.begun == Begun(note.mark, "2025-12-31", stay=True)
    [leave] = GpuHost.steps("esx1", IF_NEEDED, state, AROUND)
    assert leave.stay
    assert GpuHostNote.decode(leave.note) == COMMITTED


def test_what_another_resource_has_begun_is_left_to_it() -> None:
    begun = Begun(Mark("another", "gpu_host/esx1"), "2025-12-31")
    assert steps(seen(COMMITTED, begun, *DONE, maintenance=True)) == []


def test_a_host_that_is_owed_a_restart_waits_for_the_run_that_restarts_others_of_its_cluster() -> None:
    state = seen(COMMITTED, None, *OWED, lease=OTHER)
    [wait, reboot, leave] = GpuHost.steps("esx1", IF_NEEDED, state, AROUND)
    assert (
        wait.title()
        == "wait for process 4711 on far since 2026-01-01T00:00:00Z, which restarts hosts of farm"
    )
    assert wait.waits_ready
    assert [type(each).__name__ for each in (reboot, leave)] == ["Reboot", "Leave"]
    assert asked(state).status is Ready.WAITING
    assert asked(state).why == "process 4711 on far since 2026-01-01T00:00:00Z restarts hosts of farm"


def test_what_another_run_has_begun_and_still_works_on_is_not_ended_beside_it() -> None:
    begun = Begun(MARK, "2025-12-31")
    assert steps(seen(COMMITTED, begun, *DONE, lease=OTHER, maintenance=True)) == ["Wait", "Leave"]
    restarting = seen(COMMITTED, begun, *DONE, lease=OTHER, connection="notResponding", boot="")
    assert steps(restarting) == ["Await", "Wait", "Leave"]


def test_a_host_that_needs_no_restart_waits_for_nobody() -> None:
    state = seen(COMMITTED, None, *DONE, lease=OTHER)
    assert steps(state) == []
    assert asked(state).status is Ready.READY
    never = spec()
    owed = seen(replace(COMMITTED, mark=MARK.committed(never.applied())), None, *OWED, lease=OTHER)
    assert steps(owed, never) == []


def attributes(sandbox: Running) -> list[str]:
    with administrator(SITE, sandbox) as vcenter:
        defined = vcenter.session.read(lambda content: content.customFieldsManager.field)
        return sorted(each.name for each in defined if each.name.startswith("bfinfra"))


def in_maintenance(sandbox: Running) -> bool:
    with administrator(SITE, sandbox) as vcenter:
        moids = [moid for moid, _ in vcenter.hosts.notes("x").values()]
        return any(each.maintenance for each in vcenter.hosts.read(moids, "x"))


def test_no_lease_is_left_and_a_destroy_leaves_no_attribute(sandbox: Running) -> None:
    sandbox.reset()
    assert made(apply(SITE, sandbox))
    assert attributes(sandbox) == ["bfinfra", BEGUN]
    assert made(apply(SITE, sandbox, destroy=True))
    assert attributes(sandbox) == []


def begun_notes(sandbox: Running) -> list[str]:
    with administrator(SITE, sandbox) as vcenter:
        return [text for _, text in vcenter.hosts.notes(BEGUN).values() if text]


def test_a_destroy_leaves_what_another_run_has_begun_since_it_looked(sandbox: Running) -> None:
    sandbox.reset()
    assert made(apply(SITE, sandbox))
    text = Begun(Mark("another", "host_image/farm"), "2025-12-31").encode()

    def begins() -> None:
        with administrator(SITE, sandbox) as vcenter:
            [moid] = [moid for moid, noted in vcenter.hosts.notes(ATTRIBUTE).values() if noted]
            vcenter.hosts.set_attribute(moid, BEGUN, text)

    amid = Amid("RemoveCustomFieldDef", begins)
    with administrator(SITE, sandbox) as vcenter:  # nothing is to be restarted: the note alone goes
        [moid] = [moid for moid, noted in vcenter.hosts.notes(ATTRIBUTE).values() if noted]
        vcenter.hosts.set_attribute(moid, ATTRIBUTE, GpuHostNote(noted_mark(vcenter, moid)).encode())
    destroyed = bfinfra.apply(
        bfinfra.load(SITE, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        destroy=True,
        options=Options(retry=QUICK),
        context=bfinfra.RunContext(sandbox=sandbox, retry=QUICK, middleware=(amid,)),
    )
    assert made(destroyed), endings(destroyed)
    assert amid.begun
    assert begun_notes(sandbox) == [text]


def noted_mark(vcenter: Any, moid: str) -> Mark:
    [detail] = vcenter.hosts.read([moid], "x")
    found = GpuHostNote.decode(detail.attributes[ATTRIBUTE])
    assert found is not None
    return found.mark


def test_a_restart_ends_though_somebody_takes_its_note_off(sandbox: Running) -> None:
    sandbox.reset()

    def takes_off() -> None:
        with administrator(SITE, sandbox) as vcenter:
            [moid] = [moid for moid, text in vcenter.hosts.notes(BEGUN).values() if text]
            vcenter.hosts.clear_attribute(moid, BEGUN)

    amid = Amid("RebootHost_Task", takes_off, after=True)
    outcome = bfinfra.apply(
        bfinfra.load(SITE, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=Options(retry=QUICK),
        context=bfinfra.RunContext(sandbox=sandbox, retry=QUICK, middleware=(amid,)),
    )
    assert made(outcome), endings(outcome)
    assert amid.begun
    assert not in_maintenance(sandbox)
    assert begun_notes(sandbox) == []


def test_drift_and_the_next_apply_end_what_a_killed_run_began_though_another_committed_its_note(
    sandbox: Running, tmp_path: Any
) -> None:
    sandbox.reset()
    code = kill_at(SITE, sandbox, 1, "after", tmp_path / "killed", method="RebootHost_Task")
    assert code == KILLED
    with administrator(SITE, sandbox) as vcenter:  # as the slower one of two runs does
        [(moid, text)] = [each for each in vcenter.hosts.notes(ATTRIBUTE).values() if each[1]]
        note = GpuHostNote.decode(text)
        assert note is not None
        wanted = next(iter(bfinfra.load(SITE, sandbox=sandbox).resources.values()))
        committed = replace(note, mark=note.mark.committed(wanted.applied()))
        vcenter.hosts.set_attribute(moid, ATTRIBUTE, committed.encode())
    assert in_maintenance(sandbox)
    titles = [each.why for each in drift(SITE, sandbox).found]
    assert any("out of maintenance mode" in each for each in titles), titles
    again = apply(SITE, sandbox)
    assert made(again), endings(again)
    assert not in_maintenance(sandbox)
    assert plan(SITE, sandbox).pending == ()


def test_a_wait_for_another_runs_lease_names_it_and_ends_with_the_deadline(sandbox: Running) -> None:
    sandbox.reset()
    with administrator(SITE, sandbox) as vcenter:
        hosts = {moid for moid, _ in vcenter.hosts.notes("x").values()}
        clusters = {each.cluster for each in vcenter.hosts.read(hosts, "x")}

        def hold(content: Any) -> None:
            for cluster in clusters:
                key = content.customFieldsManager.AddCustomFieldDef(PREFIX + cluster, None, None, None).key
                value = "by=far/1a2b/4711 since=2026-01-01T00:00:00Z n=1"
                content.customFieldsManager.SetField(content.rootFolder, key, value)

        vcenter.session.write(hold)
    said: list[str] = []
    outcome = bfinfra.apply(
        bfinfra.load(SITE, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=Options(retry=QUICK, deadline=0.2),
        on_event=lambda event: said.append(event.title) if isinstance(event, StepBegun) else None,
        context=bfinfra.RunContext(sandbox=sandbox, retry=QUICK),
    )
    assert said[-1] == (
        "wait for process 4711 on far since 2026-01-01T00:00:00Z, which restarts hosts of farm"
    )
    [ending] = endings(outcome).values()
    assert ending.startswith("still-waiting: ")
    assert "process 4711 on far" in ending
    assert "RebootHost_Task" not in sandbox.tally()["writes"]["vcenter"]
