"""Which cards a site means, and what is said of those that it can't have."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kinds.checking import BAD, GOOD, WARNING
from kinds.gpu_host.test_gpu_host import ONE, TWO, card, holder, host, spec

from bfinfra.backends.vcenter.esxi import Holder
from bfinfra.kinds.vcenter.gpu_host import cards
from bfinfra.kinds.vcenter.gpu_host.checks import connected
from bfinfra.kinds.vcenter.gpu_host.spec import Spec
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

THREE = "0000:d8:00.0"
V100: dict[str, Any] = {"vendor": "0x10de", "device": "0x1db6"}


def of(*parts: dict[str, Any]) -> Spec:
    return Spec.model_validate({"passthrough": parts})


def chosen(wanted: Spec, state: Any, own: Any = ()) -> list[str]:
    return [each.address for each in cards.chosen(wanted, state, "site", own)]


def refused(wanted: Spec, state: Any) -> tuple[str, str, str, str]:
    with pytest.raises(Refusal) as raised:
        chosen(wanted, state)
    (problem,) = raised.value.problems
    return raised.value.field, problem.what, problem.why, problem.next


def test_a_card_by_its_address_is_taken_before_one_by_its_make_whatever_their_order():
    assert chosen(of(V100, {"address": ONE}), host(card(ONE), card(TWO))) == [ONE, TWO]


def test_of_equal_cards_a_server_keeps_its_own_then_one_that_is_on_already_is_taken_then_the_first():
    one, off, on = of(V100), card(TWO), card(THREE, on=True)
    assert chosen(one, host(card(ONE), off, on, holders=(holder("bf", TWO, site="site"),))) == [TWO]
    assert chosen(one, host(card(ONE), off, on)) == [THREE]
    assert chosen(one, host(off, card(ONE))) == [ONE]


def test_a_cards_memory_is_the_files_else_that_of_its_model():
    there = host(card(ONE), card(TWO), replace(card(THREE), device=1))
    wanted = of({"address": ONE}, {"address": TWO, "memory": "24GiB"}, {"address": THREE})
    assert [each.memory for each in cards.chosen(wanted, there, "site")] == [32 << 30, 24 << 30, None]


def test_the_card_of_a_server_that_the_site_describes_can_be_had_before_it_is_adopted():
    held = host(card(ONE), card(TWO), holders=(holder("bf", ONE),))
    assert chosen(spec(), held, {"bf"}) == [ONE, TWO]
    assert refused(spec(), held)[2] == f"the host has 2; the VM bf holds {ONE}"


def test_a_copy_of_this_sites_server_is_somebody_elses():
    mark = Mark("site", "bitfusion_server/bf", id="uuid-1").encode()
    for machine, is_ours in ((None, True), ("uuid-1", True), ("uuid-2", False)):
        vm: Any = machine and SimpleNamespace(instance_uuid=machine)
        assert cards.ours(Holder("vm-1", "bf", True, mark, (ONE,), (), vm), "site") is is_ours
    assert not cards.ours(holder("theirs", ONE), None)


def test_a_card_is_not_given_twice():
    what = f"{ONE} is named twice"
    assert refused(of({"address": ONE}, {"address": ONE}), host(card(ONE))) == (
        "passthrough.1.address",
        what,
        "",
        "",
    )


def test_of_a_wrong_address_the_nearest_card_that_can_be_passed_through_is_named():
    disk = replace(card("0000:3c:00.0"), display=False)
    there = host(card("0000:3b:00.2", capable=False), card(ONE), card(TWO), disk)
    assert refused(of({"address": "0000:3b:00.1"}), there) == (
        "passthrough.0.address",
        "the host has no PCI device 0000:3b:00.1",
        "",
        f"did you mean {ONE}?",
    )
    assert refused(of({"address": "0000:ff:1f.7"}), host(card("0000:ff:1f.6", capable=False), disk))[3] == ""


@pytest.mark.parametrize(("name", "it"), [("V100", "V100"), ("", "it")])
def test_what_a_card_can_not_do_is_told_with_its_name_and_a_way_out(name, it):
    assert refused(of({"address": ONE}), host(replace(card(ONE, capable=False), name=name))) == (
        "passthrough.0.address",
        f"{ONE} can't be passed through",
        f"{it} does not support it",
        "turn on Above-4G decoding and VT-d in the host's BIOS, or choose another device",
    )


def test_of_a_card_in_use_the_vm_is_named():
    assert refused(of({"address": ONE}), host(card(ONE), holders=(holder("theirs", ONE),))) == (
        "passthrough.0.address",
        f"{ONE} is in use",
        "it belongs to the VM theirs",
        "take it out of that VM first, or choose another card",
    )


@pytest.mark.parametrize(
    ("count", "devices", "what", "why"),
    [
        (
            1,
            [card(ONE, capable=False)],
            "1 × 10de:1db6 is wanted, and none can be had",
            f"the host has 1; {ONE} is not capable of passthrough",
        ),
        (
            3,
            [card(ONE, capable=False), card(TWO, capable=False), card(THREE)],
            "3 × 10de:1db6 are wanted, and 1 can be had",
            f"the host has 3; {ONE}, {TWO} are not capable of passthrough",
        ),
        (2, [card(ONE)], "2 × 10de:1db6 are wanted, and 1 can be had", "the host has 1"),
    ],
)
def test_too_few_cards_are_refused_with_what_the_host_has(count, devices, what, why):
    assert refused(of({**V100, "count": count}), host(*devices)) == (
        "passthrough.0",
        what,
        why,
        "lower count, or free a card",
    )


@pytest.mark.parametrize(
    ("display", "there"), [(True, f"10de:1eb8 V100 at {ONE}"), (False, "none")], ids=["another", "none"]
)
def test_of_a_make_that_is_not_there_the_graphics_devices_that_are_there_are_told(display, there):
    assert refused(of(V100), host(replace(card(ONE), device=0x1EB8, display=display))) == (
        "passthrough.0",
        "the host has no PCI device 10de:1db6",
        f"its graphics devices: {there}",
        "correct vendor and device, or choose another host",
    )


def test_the_doctor_says_of_each_host_whether_a_server_can_be_started_on_it():
    names = ("esx1", "esx2", "esx3", "exs1")
    hosts = [
        SimpleNamespace(name=name, connected=name != "esx2", maintenance=name == "esx3") for name in names[:3]
    ]
    inventory = SimpleNamespace(read=lambda: SimpleNamespace(hosts=hosts))
    context: Any = SimpleNamespace(
        entered=lambda: SimpleNamespace(inventory=inventory),
        of=lambda kind: {Key(kind, name): None for name in names},
    )
    assert [(each.about, each.health, each.what, each.why, each.next) for each in connected(context)] == [
        ("gpu_host/esx1", GOOD, "is connected", "", ""),
        ("gpu_host/esx2", BAD, "vCenter has no connection to it", "", "check the host's state in vCenter"),
        (
            "gpu_host/esx3",
            WARNING,
            "it is in maintenance mode",
            "no server can be started on it",
            "take it out when the work there is done",
        ),
        ("gpu_host/exs1", BAD, "vCenter knows no such host", "", "did you mean esx1?"),
    ]
