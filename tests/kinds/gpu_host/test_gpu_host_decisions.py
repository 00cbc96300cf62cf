"""What is decided for a host with GPUs: cards, restarts and maintenance mode, word for word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from kinds.gpu_host.test_gpu_host import MARK, ONE, TWO, card, holder, host, spec
from kinds.gpu_host.test_gpu_host_two_runs import OTHER, seen

from bfinfra.kinds.vcenter.base.begun import Begun, Wait
from bfinfra.kinds.vcenter.gpu_host import decide
from bfinfra.kinds.vcenter.gpu_host.kind import Spec, State
from bfinfra.kinds.vcenter.gpu_host.state import ATTRIBUTE, IN_EFFECT, GpuHostFacts, GpuHostNote, read
from bfinfra.kinds.vcenter.gpu_host.steps import Await, Commit, Forget, Leave, Reboot, Set, ShutDown
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Refusal
from bfinfra.model.refs import Key

THREE = "0000:d8:00.0"
IF_NEEDED, NEVER = spec(reboot="if_needed"), spec()
BOOT, BEFORE = "2026-01-01", "2025-12-31"
MOID: dict[str, str] = {"name": "esx1", "moid": "host-1"}
PLACE: dict[str, str] = {**MOID, "cluster": "c1"}
INERT = (card(ONE, on=True, active=False), card(TWO, on=True))
GOOD = (card(ONE, on=True), card(TWO, on=True))


def note(
    wanted: Spec | None = None, before: Mapping[str, bool] | None = None, reboot: str = ""
) -> GpuHostNote:
    mark = MARK.committed(wanted.applied()) if wanted else MARK
    return GpuHostNote(mark, {ONE: False} if before is None else before, reboot)


def managed(wanted: Spec, state: State, machines: frozenset[str] = frozenset()) -> list[Any]:
    return [*decide.manage("esx1", wanted, state, MARK, machines)]


def released(state: State) -> list[Any]:
    return [*decide.release("esx1", state, MARK)]


def told(steps: list[Any]) -> list[tuple[str, list[tuple[str, Any, Any]]]]:
    return [
        (type(step).__name__, [(each.field, each.now, each.wanted) for each in step.changes])
        for step in steps
    ]


def refused(decision: Any, *given: Any) -> tuple[str, str, str, str]:
    with pytest.raises(Refusal) as raised:
        decision(*given)
    (problem,) = raised.value.problems
    return raised.value.field, problem.what, problem.why, problem.next


def test_a_host_that_vcenter_does_not_know_is_refused():
    assert refused(decide.absent, "esx9", NEVER, GpuHostFacts(("esx1",))) == (
        "",
        "there is no host esx9",
        "vCenter doesn't know it",
        "did you mean esx1?",
    )


def test_the_cluster_that_the_site_names_must_be_the_hosts():
    facts = GpuHostFacts(("esx1",), clusters={"farm": "c1", "yard": "c2"})
    for cluster in (None, "farm"):
        decide.check_cluster(spec(cluster=cluster), host(), facts)
    assert refused(decide.check_cluster, spec(cluster="yard"), host(), facts) == (
        "cluster",
        "the host is not in the cluster yard",
        "it is in farm",
        "write farm, or leave it out",
    )
    field, what, _, then = refused(decide.check_cluster, spec(cluster="yards"), host(), facts)
    assert (field, what, then) == ("cluster", "there is no cluster yards", "did you mean yard?")


def test_the_first_apply_notes_how_the_cards_were_switches_them_and_restarts_the_host():
    state = host(card(ONE), card(TWO, on=True))
    world = (Change(f"passthrough.{ONE}", "off", "on"),)
    steps = managed(IF_NEEDED, state)
    changes = steps[0].changes
    assert changes[: len(world)] == world
    begun = Begun(MARK, BOOT)
    assert steps == [
        Set(**MOID, wanted={ONE: True}, note=GpuHostNote(MARK, {ONE: False}).encode(), changes=changes),
        Reboot(
            **PLACE,
            boot=BOOT,
            maintenance=False,
            begun=begun.encode(),
            note=GpuHostNote(MARK).encode(),
            instead=GpuHostNote(MARK, {}, f"from:{BOOT}").encode(),
            changes=changes,
        ),
        Leave(**PLACE, note="", stay=False),
        Commit(**MOID, note=GpuHostNote(MARK.committed(IF_NEEDED.applied())).encode(), changes=changes),
    ]
    assert changes[len(world) :]


def test_a_host_in_maintenance_mode_restarts_and_stays_in_it():
    steps = managed(IF_NEEDED, host(*INERT, note=note(IF_NEEDED), maintenance=True))
    begin, leave = steps
    assert (begin.maintenance, begin.begun, begin.note, leave.stay) == (
        True,
        Begun(MARK, BOOT, stay=True).encode(),
        "",
        True,
    )
    assert begin.instead == replace(note(IF_NEEDED), reboot=f"from:{BOOT}:stay").encode()


def test_a_host_that_this_site_took_into_maintenance_mode_and_that_did_not_restart_leaves_it_after_all():
    state = seen(note(IF_NEEDED), Begun(MARK, BOOT), *INERT, maintenance=True)
    begin, leave = managed(IF_NEEDED, state)
    assert (type(begin), begin.begun, leave.stay) == (Reboot, Begun(MARK, BOOT).encode(), False)


def test_a_change_of_the_file_alone_is_told_as_such_and_keeps_what_is_known_of_the_last_reboot():
    for last, kept in ((f"after:{BOOT}", f"after:{BOOT}"), (IN_EFFECT, ""), ("", "")):
        (commit,) = managed(IF_NEEDED, host(*GOOD, note=note(NEVER, reboot=last)))
        assert told([commit]) == [("Commit", [("reboot", "never", "if_needed")])]
        assert commit.note == note(IF_NEEDED, reboot=kept).encode()


def test_what_is_set_and_not_in_effect_is_drift_only_where_a_reboot_is_allowed_and_did_not_fail():
    inert = [(f"passthrough.{ONE}.active", False, True)]
    state = host(*INERT, note=note(IF_NEEDED))
    assert told(managed(IF_NEEDED, state)) == [("Reboot", inert), ("Leave", [])]
    assert managed(NEVER, host(*INERT, note=note(NEVER))) == []
    assert managed(IF_NEEDED, host(*INERT, note=note(IF_NEEDED, reboot=f"after:{BOOT}"))) == []
    wanted: dict[str, bool] = {ONE: True, TWO: False, THREE: True}
    mixed = host(card(ONE), card(TWO, on=True), card(THREE, on=True, active=False), note=note(IF_NEEDED))
    fields = [(each.field, each.now, each.wanted) for each in decide.drift(wanted, mixed, reboots=True)]
    assert fields == [
        (f"passthrough.{ONE}", "off", "on"),
        (f"passthrough.{TWO}", "on", "off"),
        (f"passthrough.{THREE}.active", False, True),
    ]
    assert [each.field for each in decide.drift(wanted, mixed, reboots=False)] == [
        f"passthrough.{ONE}",
        f"passthrough.{TWO}",
    ]


def test_a_machine_that_the_site_describes_keeps_its_card_while_it_is_adopted():
    held = host(*INERT, holders=(holder("bf", ONE, on=False),))
    assert [type(each) for each in managed(NEVER, held, frozenset({"bf"}))] == [Commit]
    assert decide.owed(NEVER, held, frozenset({"bf"})) == [ONE]
    with pytest.raises(Refusal, match=f"the VM bf holds {ONE}"):
        managed(NEVER, held)


def test_only_this_sites_running_servers_are_shut_down_and_with_what_for():
    running, off = holder("bf", ONE, site="site"), holder("off", TWO, site="site", on=False)
    state = host(*INERT, note=note(IF_NEEDED), holders=(running, off))
    allowed = spec(reboot="if_needed", reboot_in_use=True)
    down, begin, *_ = managed(allowed, state)
    assert down == ShutDown(**MOID, vm="bf", vm_moid="vm-1", changes=begin.changes)
    assert begin.changes
    why = "work on its GPU would be lost"
    what = "esx1 can't be rebooted: the VM bf runs with its GPU"
    then = "shut it down first, or write reboot_in_use: true"
    assert refused(managed, IF_NEEDED, state) == ("reboot", what, why, then)
    theirs = replace(state, detail=replace(state.detail, holders=(holder("bf", THREE),)))
    assert refused(managed, allowed, theirs) == (
        "reboot",
        what,
        "it is not this site's",
        "shut it down first",
    )


@pytest.mark.parametrize("stay", [False, True])
def test_a_host_that_is_not_back_is_waited_for(stay):
    state = seen(note(IF_NEEDED), Begun(MARK, BOOT, stay), *INERT, connection="notResponding")
    assert managed(IF_NEEDED, state) == [Await(**MOID), Leave(**PLACE, note="", stay=stay)]


@pytest.mark.parametrize(
    ("devices", "wanted", "over"),
    [
        (GOOD, IF_NEEDED, ""),
        (INERT, IF_NEEDED, f"after:{BOOT}"),
        (GOOD, None, IN_EFFECT),
        (INERT, None, f"after:{BOOT}"),
    ],
    ids=["helped", "in vain", "helped a killed apply", "a killed apply in vain"],
)
def test_a_host_that_is_back_is_noted_to_be_with_whether_it_helped(devices, wanted, over):
    state = seen(note(wanted), Begun(MARK, BEFORE), *devices, maintenance=True)
    leave = managed(IF_NEEDED, state)[0]
    assert leave == Leave(**PLACE, note=note(wanted, reboot=over).encode(), stay=False)


def test_a_host_that_is_out_of_maintenance_mode_already_stays_and_without_a_note_gets_none():
    state = replace(
        seen(note(IF_NEEDED), Begun(MARK, BEFORE), *GOOD), note=None, mark=MARK.committed(IF_NEEDED.applied())
    )
    assert managed(IF_NEEDED, state) == [Leave(**PLACE, note="", stay=True)]


def test_a_release_puts_back_each_card_and_says_what_it_owes():
    before: dict[str, bool] = {ONE: False, TWO: True, "0000:00:00.0": True}
    state = host(card(ONE, on=True), card(TWO), note=note(NEVER, before))
    step, forget = released(state)
    assert step == Set(
        **MOID,
        wanted={ONE: False, TWO: True},
        note=note(NEVER, before).encode(),
        changes=(Change(f"passthrough.{ONE}", "on", "off"), Change(f"passthrough.{TWO}", "off", "on")),
    )
    assert forget == Forget(**MOID, owed=" (a reboot of the host is owed)")
    assert told([step]) == [
        ("Set", [(f"passthrough.{ONE}", "on", "off"), (f"passthrough.{TWO}", "off", "on")])
    ]
    assert released(host(card(ONE), note=note(NEVER))) == [Forget(**MOID)]
    inert = host(card(ONE, active=True), note=note(NEVER))
    assert released(inert) == [Forget(**MOID, owed=" (a reboot of the host is owed)")]


def test_a_release_restarts_the_host_where_the_site_allowed_it_and_owes_nothing():
    inert = [(f"passthrough.{ONE}.active", True, False)]
    state = host(card(ONE, active=True), note=note(IF_NEEDED))
    steps = released(state)
    assert told(steps) == [("Reboot", inert), ("Leave", []), ("Forget", [])]
    assert steps[-1] == Forget(**MOID)


@pytest.mark.parametrize(
    ("last", "begun", "found"),
    [
        ("", None, [Set, Forget]),
        (IN_EFFECT, None, [Set, Reboot, Leave, Forget]),
        ("", Begun(MARK, BEFORE), [Leave, Set, Reboot, Leave, Forget]),
    ],
    ids=["nothing says that it may", "it was", "it is"],
)
def test_a_release_after_a_killed_apply_restarts_the_host_only_if_that_apply_did(last, begun, found):
    steps = released(seen(note(None, reboot=last), begun, card(ONE, on=True)))
    assert [type(each) for each in steps] == found
    assert bool(steps[-1].owed) is (Reboot not in found)


def test_a_card_that_is_switched_after_a_reboot_of_a_killed_apply_keeps_that_the_site_allows_one():
    state = host(card(ONE, on=True), card(TWO), note=note(None, reboot=IN_EFFECT))
    switch = managed(IF_NEEDED, state)[0]
    assert switch.note == note(None, {ONE: False, TWO: False}, IN_EFFECT).encode()


def test_each_way_through_maintenance_mode_waits_for_another_run_that_restarts_hosts():
    wait = Wait(cluster="farm", holder=str(OTHER), key=OTHER.key)
    for begun, more, before in (
        (None, {}, []),
        (Begun(MARK, BEFORE), {}, []),
        (Begun(MARK, BOOT), {"connection": "notResponding"}, [Await(**MOID)]),
    ):
        steps = managed(IF_NEEDED, seen(note(IF_NEEDED), begun, *INERT, lease=OTHER, **more))
        assert steps[: len(before) + 1] == [*before, wait]
        assert len(steps) > len(before) + 1


def test_a_release_does_not_mind_this_sites_servers_which_went_before_and_refuses_for_others():
    def held(site: str) -> State:
        return host(card(ONE, on=True), note=note(IF_NEEDED), holders=(holder("bf", ONE, site=site),))

    assert [type(each) for each in released(held("site"))] == [Set, Reboot, Leave, Forget]
    assert refused(released, held("other")) == (
        "",
        f"passthrough of {ONE} can't be put back",
        "the VM bf uses the card",
        "delete that VM first",
    )


def test_a_reboot_that_is_owed_is_told_with_the_cards_of_each_host_that_waits_for_it():
    first, begun, held, late = (Key("gpu_host", name) for name in ("esx0", "esx1", "esx2", "esx3"))
    allowed = Key("gpu_host", "esx")
    other = Key("host_option", "o")
    own = host(*INERT, note=note(NEVER), holders=(holder("bf", ONE, site="site"),))
    wanted: dict[Key, Any] = {
        allowed: IF_NEEDED,
        other: object(),
        begun: NEVER,
        held: NEVER,
        late: NEVER,
        first: NEVER,
    }
    states = {
        allowed: own,
        begun: seen(note(NEVER), Begun(MARK, BEFORE), *INERT),
        held: host(*INERT, holders=(holder("vm", ONE),)),
        late: own,
        first: host(*INERT, holders=(holder("theirs", ONE),)),
    }
    found = [*decide.reboots_owed(wanted, states, frozenset({"vm"}))]
    assert found == [
        Conflict(
            Spot(key, "reboot"),
            f"passthrough of {ONE} takes effect when the host reboots",
            why="the site says reboot: never",
            next="write reboot: if_needed, or reboot the host yourself",
            stops=False,
        )
        for key in (held, late)
    ]


@pytest.mark.parametrize(
    ("before", "reboot", "text"),
    [
        ({}, "", ""),
        ({TWO: False, ONE: True}, "", f" before={ONE}=1,{TWO}=0"),
        ({ONE: False}, IN_EFFECT, f" before={ONE}=0 reboot=helped"),
        ({}, f"after:{BOOT}", f" reboot=after:{BOOT}"),
    ],
)
def test_a_note_is_one_line_and_read_as_it_was_written(before, reboot, text):
    made = GpuHostNote(MARK, before, reboot)
    assert made.encode() == MARK.encode() + text
    assert GpuHostNote.decode(made.encode()) == made


def test_of_a_damaged_note_the_rest_is_read():
    found = GpuHostNote.decode(f"{MARK.encode()} before={ONE}=1=0,junk,{TWO}=1")
    assert found == GpuHostNote(MARK, {ONE: False, TWO: True})
    assert GpuHostNote.decode(f"before={ONE}=1") is None


def test_a_reboot_that_an_earlier_release_noted_is_begun_and_no_note_any_more():
    state = host(*GOOD, note=note(None, reboot=f"from:{BEFORE}:stay"))
    assert (state.begun, state.reboot, state.note) == (Begun(MARK, BEFORE, stay=True), "", note(None))
    bare = read(replace(host(*GOOD).detail, attributes={}), "farm")
    assert (bare.mark, bare.note, bare.begun, bare.reboot, bare.before) == (None, None, None, "", {})
    assert read(replace(bare.detail, attributes={ATTRIBUTE: "somebody's"}), "farm").note is None


@pytest.mark.parametrize(
    ("begun", "more", "known", "out"),
    [
        (False, {}, "", ""),
        (False, {"maintenance": True}, "", "is in maintenance mode"),
        (False, {"connection": "notResponding"}, "esx1 is not responding", ""),
        (True, {"connection": "notResponding"}, "", "restarts, and is not back"),
        (
            True,
            {"connection": "notResponding", "maintenance": True},
            "",
            "restarts in maintenance mode, and is not back",
        ),
        (True, {"maintenance": True}, "", "is in maintenance mode"),
        (True, {}, "", ""),
    ],
)
def test_what_is_said_of_a_host_that_is_away_or_in_maintenance_mode(begun, more, known, out):
    state = seen(note(NEVER), Begun(MARK, BOOT) if begun else None, *GOOD, **more)
    assert state.last_known().partition(":")[0] == known
    assert state.out_of_service(NEVER) == out
