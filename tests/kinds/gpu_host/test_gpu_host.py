from __future__ import annotations

from dataclasses import replace

import pytest
from kinds.of_several import of_several
from pydantic import ValidationError

from bfinfra.backends.vcenter.esxi import Holder, HostDetail, PciDevice
from bfinfra.kinds.vcenter.gpu_host import cards
from bfinfra.kinds.vcenter.gpu_host.kind import GpuHost, Spec, State
from bfinfra.kinds.vcenter.gpu_host.state import ATTRIBUTE, GpuHostFacts, GpuHostNote, read
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import Ready
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption

MARK = Mark("site", "gpu_host/esx1")
AROUND = PlanContext(MARK, facts=GpuHostFacts(("esx1", "esx2")))
ONE, TWO = "0000:3b:00.0", "0000:af:00.0"


def unwired():
    """The kind without a vCenter, of a site without machines."""
    kind = object.__new__(GpuHost)
    kind._machines = frozenset()
    return kind


def card(address: str, *, on: bool = False, active: bool | None = None, capable: bool = True) -> PciDevice:
    return PciDevice(address, 0x10DE, 0x1DB6, "V100", True, capable, on, on if active is None else active)


def host(
    *devices: PciDevice, note: GpuHostNote | None = None, holders: tuple[Holder, ...] = (), **more
) -> State:
    detail = HostDetail(
        moid="host-1",
        name="esx1",
        cluster="c1",
        connection="connected",
        maintenance=False,
        boot="2026-01-01",
        devices=devices,
        vgpu_profiles=(),
        attributes={ATTRIBUTE: note.encode()} if note else {},
        holders=holders,
        datastores=frozenset(),
        networks=frozenset(),
    )
    return read(replace(detail, **more), "farm")


def holder(name: str, address: str, *, site: str = "", on: bool = True) -> Holder:
    mark = Mark(site, f"bitfusion_server/{name}").encode() if site else ""
    return Holder("vm-1", name, on, mark, (address,), ())


def spec(**fields) -> Spec:
    return Spec.model_validate(
        {"passthrough": [{"vendor": "0x10de", "device": "0x1db6", "count": 2}], **fields}
    )


def steps(wanted: Spec | None, state: State | None) -> list[str]:
    return [type(step).__name__ for step in GpuHost.steps("esx1", wanted, state, AROUND)]


def test_a_host_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(Refusal, match="did you mean esx"):
        GpuHost.steps("esx9", spec(), None, AROUND)


@of_several("gpu_host.passthrough.count")
def test_cards_are_enabled_and_how_they_were_is_noted_first():
    step = GpuHost.steps("esx1", spec(), host(card(ONE), card(TWO, on=True)), AROUND)[0]
    assert dict(step.wanted) == {ONE: True}
    assert GpuHostNote.decode(step.note) == GpuHostNote(MARK, {ONE: False})


def test_a_reboot_is_never_planned_unasked_and_is_reported_as_owed():
    state = host(
        card(ONE, on=True, active=False),
        card(TWO, on=True),
        note=GpuHostNote(MARK.committed(spec().applied()), {ONE: False}),
    )
    assert steps(spec(), state) == []
    answer = unwired().ready(spec(), state)
    assert answer.status is Ready.FAILED
    assert "write reboot: if_needed" in answer.why


def test_an_owed_reboot_is_a_warning_of_the_plan_until_the_cards_are_in_effect():
    key, facts = Key("gpu_host", "esx1"), GpuHostFacts(("esx1",))

    def warned(wanted: Spec, *devices: PciDevice) -> list[str]:
        found = GpuHost.conflicts({key: wanted}, {key: host(*devices)}, facts)
        return [each.next for each in found if not each.stops]

    owed = (card(ONE, on=True, active=False), card(TWO, on=True))
    assert warned(spec(), *owed) == ["write reboot: if_needed, or reboot the host yourself"]
    assert warned(spec(reboot="if_needed"), *owed) == []
    assert warned(spec(), card(ONE), card(TWO)) == [], "the change may take effect at once"
    assert warned(spec(), card(ONE, on=True), card(TWO, on=True)) == []


def test_a_reboot_that_may_be_needed_is_announced_with_the_change():
    found = GpuHost.steps("esx1", spec(reboot="if_needed"), host(card(ONE), card(TWO)), AROUND)
    assert [type(s).__name__ for s in found] == ["Set", "Reboot", "Leave", "Commit"]
    assert found[1].disruption is Disruption.REBOOT


def test_no_reboot_where_the_change_took_effect_at_once():
    assert steps(
        spec(reboot="if_needed"),
        host(card(ONE, on=True), card(TWO, on=True), note=GpuHostNote(MARK, {ONE: False})),
    ) == ["Commit"]


def test_a_reboot_that_was_started_is_finished_and_the_host_leaves_maintenance():
    started = GpuHostNote(MARK, {ONE: False}, "from:2025-12-31")
    state = host(card(ONE, on=True), card(TWO, on=True), note=started, maintenance=True)
    found = GpuHost.steps("esx1", spec(reboot="if_needed"), state, AROUND)
    assert [type(s).__name__ for s in found] == ["Leave", "Commit"]
    assert not found[0].stay


def test_a_host_that_was_in_maintenance_before_stays_there():
    state = host(
        card(ONE, on=True),
        card(TWO, on=True),
        note=GpuHostNote(MARK, {}, "from:2025-12-31:stay"),
        maintenance=True,
    )
    assert GpuHost.steps("esx1", spec(reboot="if_needed"), state, AROUND)[0].stay


def test_a_reboot_that_did_not_help_is_not_repeated():
    wanted = spec(reboot="if_needed")
    state = host(
        card(ONE, on=True, active=False),
        card(TWO, on=True),
        note=GpuHostNote(MARK.committed(wanted.applied()), {ONE: False}, "after:2026-01-01"),
    )
    assert steps(wanted, state) == []
    assert unwired().ready(wanted, state).status is Ready.FAILED


def test_a_restarting_host_is_waited_for():
    state = host(
        card(ONE, on=True),
        card(TWO, on=True),
        note=GpuHostNote(MARK, {}, "from:2026-01-01"),
        connection="notResponding",
    )
    assert unwired().ready(spec(reboot="if_needed"), state).status is Ready.WAITING


@pytest.mark.parametrize(
    "gone", [{"connection": "notResponding"}, {"boot": ""}, {"connection": "notResponding", "boot": ""}]
)
def test_nothing_is_noted_of_a_host_while_it_restarts_for_another_run(gone):
    started = host(
        card(ONE, on=True, active=False),
        card(TWO, on=True),
        note=GpuHostNote(MARK, {ONE: False}, "from:2026-01-01"),
        maintenance=True,
    )
    state = replace(started, detail=replace(started.detail, **gone))
    found = GpuHost.steps("esx1", spec(reboot="if_needed"), state, AROUND)
    assert [type(s).__name__ for s in found] == ["Await", "Leave", "Commit"]
    assert found[0].waits_ready
    assert unwired().ready(spec(reboot="if_needed"), state).status is Ready.WAITING


@pytest.mark.parametrize(
    ("site", "in_use", "why"),
    [("", True, "not this site's"), ("other", True, "not this site's"), ("site", False, "would be lost")],
)
def test_a_gpu_in_use_stops_a_reboot(site, in_use, why):
    state = host(
        card(ONE),
        card(TWO),
        card("0000:d8:00.0", on=True),
        holders=(holder("vm", "0000:d8:00.0", site=site),),
    )
    with pytest.raises(Refusal, match=why) as raised:
        steps(spec(reboot="if_needed", reboot_in_use=in_use), state)
    assert raised.value.field == "reboot"


def test_this_sites_servers_are_shut_down_first_where_that_is_allowed():
    state = host(
        card(ONE),
        card(TWO),
        card("0000:d8:00.0", on=True),
        holders=(holder("bf", "0000:d8:00.0", site="site"),),
    )
    assert steps(spec(reboot="if_needed", reboot_in_use=True), state) == [
        "Set",
        "ShutDown",
        "Reboot",
        "Leave",
        "Commit",
    ]


def test_destroying_puts_back_what_was_there_before():
    note = GpuHostNote(MARK.committed(spec().applied()), {ONE: False})
    found = GpuHost.steps("esx1", None, host(card(ONE, on=True), card(TWO, on=True), note=note), AROUND)
    assert [type(s).__name__ for s in found] == ["Set", "Forget"]
    assert dict(found[0].wanted) == {ONE: False}
    assert "reboot of the host is owed" in found[1].title()


def test_a_card_that_a_strangers_vm_took_since_can_not_be_put_back():
    state = host(card(ONE, on=True), note=GpuHostNote(MARK, {ONE: False}), holders=(holder("theirs", ONE),))
    with pytest.raises(Refusal, match="theirs"):
        steps(None, state)


def test_a_card_no_longer_wanted_gets_its_earlier_value():
    one = Spec.model_validate({"passthrough": [{"address": TWO}]})
    note = GpuHostNote(MARK.committed(spec().applied()), {ONE: False, TWO: False})
    found = GpuHost.steps("esx1", one, host(card(ONE, on=True), card(TWO, on=True), note=note), AROUND)
    assert dict(found[0].wanted) == {ONE: False}


def test_what_somebody_turned_off_is_drift():
    note = GpuHostNote(MARK.committed(spec().applied()), {ONE: False})
    step = GpuHost.steps("esx1", spec(), host(card(ONE), card(TWO, on=True), note=note), AROUND)[0]
    assert [(c.field, c.now, c.wanted) for c in step.changes] == [(f"passthrough.{ONE}", "off", "on")]


@pytest.mark.parametrize(
    ("passthrough", "state", "field"),
    [
        ({"address": "0000:00:01.0"}, host(card(ONE)), "passthrough.0.address"),
        ({"address": ONE}, host(card(ONE, capable=False)), "passthrough.0.address"),
        ({"address": ONE}, host(card(ONE), holders=(holder("theirs", ONE),)), "passthrough.0.address"),
        ({"vendor": "10de", "device": "1db6", "count": 2}, host(card(ONE)), "passthrough.0"),
        (
            {"vendor": "10de", "device": "1db6", "count": 2},
            host(card(ONE), card(TWO), holders=(holder("theirs", ONE),)),
            "passthrough.0",
        ),
    ],
)
def test_devices_that_are_not_there_or_anothers_are_refused(passthrough, state, field):
    with pytest.raises(Refusal) as raised:
        steps(Spec.model_validate({"passthrough": [passthrough]}), state)
    assert raised.value.field == field


def test_memory_comes_from_the_table_or_the_spec():
    table = cards.chosen(spec(), host(card(ONE), card(TWO)), "site")
    assert [gpu.memory for gpu in table] == [32 << 30, 32 << 30]
    given = Spec.model_validate({"passthrough": [{"address": ONE, "memory": "24GiB"}]})
    assert cards.chosen(given, host(card(ONE)), "site")[0].memory == 24 << 30


@pytest.mark.parametrize(
    "part",
    [{}, {"vendor": "10de"}, {"address": ONE, "vendor": "10de", "device": "1db6"}, {"address": "3b:00.0"}],
)
def test_a_card_is_named_by_make_or_by_address(part):
    with pytest.raises(ValidationError):
        Spec.model_validate({"passthrough": [part]})


MANY = [f"0000:15:{slot:02x}.0" for slot in range(32)]


def test_a_refusal_names_a_few_of_many_devices():
    """A real host has 50 of one make, none of which can be passed through."""
    with pytest.raises(Refusal) as refused:
        GpuHost.steps("esx1", spec(), host(*(card(address, capable=False) for address in MANY)), AROUND)
    assert refused.value.problems[0].why == (
        "the host has 32; 0000:15:00.0, 0000:15:01.0, 0000:15:02.0, 0000:15:03.0 and 28 more are not "
        "capable of passthrough"
    )


def test_a_refusal_names_a_few_of_many_holders():
    held = tuple(holder(f"vm-{address}", address) for address in MANY)
    with pytest.raises(Refusal) as refused:
        GpuHost.steps(
            "esx1", spec(), host(*(card(address, on=True) for address in MANY), holders=held), AROUND
        )
    assert refused.value.problems[0].why.count("holds") == 4
    assert refused.value.problems[0].why.endswith("and 28 more")


def test_a_refusal_names_a_few_of_many_graphics_devices():
    other = [replace(card(address), device=0x1EB8) for address in MANY]
    with pytest.raises(Refusal) as refused:
        GpuHost.steps("esx1", spec(), host(*other), AROUND)
    assert refused.value.problems[0].why.count("V100") == 4
    assert refused.value.problems[0].why.endswith("and 28 more")


CHANGED_FIELDS = [
    {"passthrough": [{"vendor": "0x10de", "device": "0x1db6"}]},
    {"passthrough": []},
    {"cluster": "compute"},
]
