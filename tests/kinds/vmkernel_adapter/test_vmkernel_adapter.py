"""An adapter has an address on each host."""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from pydantic import ValidationError

from bfinfra.backends.vcenter.esxi_settings import Vmk
from bfinfra.kinds.vcenter import vmkernel_adapter
from bfinfra.kinds.vcenter.base.host_note import HostNote
from bfinfra.kinds.vcenter.vmkernel_adapter import Adapter, VmkernelAdapter, VmkernelFacts
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import BfinfraError, Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running


def test_an_address_has_a_prefix():
    with pytest.raises(ValidationError, match="prefix"):
        vmkernel_adapter.Spec(port_group="p", hosts={"a": "192.168.0.24"})


def adapters(vmk=None, note=None):
    return vmkernel_adapter.State(
        mark=note.mark if note else None, port_group="p", adapters={"a": Adapter("host-1", vmk, note)}
    )


def of_adapters(state, **changes):
    mark = Mark("s", "vmkernel_adapter/roce")
    spec = vmkernel_adapter.Spec(
        **{"port_group": "p", "hosts": {"a": "192.168.0.24/24"}, "mtu": 9000, **changes}
    )
    return VmkernelAdapter.steps(
        "roce",
        spec,
        state,
        PlanContext(
            mark, {"port_group": ResolvedRef(Key("port_group", "p"), None, None)}, facts=VmkernelFacts(("a",))
        ),
    )


def test_an_adapter_is_compared_field_by_field():
    note = HostNote(
        Mark("s", "vmkernel_adapter/roce").committed(
            {"port_group": "p", "hosts": {"a": "192.168.0.24/24"}, "mtu": 9000}
        )
    )
    assert of_adapters(adapters(Vmk("vmk3", "k", "192.168.0.24/24", 9000), note)) == []
    (step,) = of_adapters(adapters(Vmk("vmk3", "k", "192.168.0.99/24", 1500), note))
    assert {change.field for change in step.changes} == {"hosts.a", "mtu"}


def test_an_adapter_that_somebody_made_there_is_left_alone():
    with pytest.raises(Refusal, match="already"):
        of_adapters(adapters(Vmk("vmk5", "k", "dhcp", 1500)))


def problems_of(path: Path, text: str, sandbox: Running, words: str = "frames of") -> list[str]:
    path.write_text(text)
    try:
        found = plan(path, sandbox).problems
    except BfinfraError as error:
        found = error.problems
    return [text for each in found if words in (text := str(each))]


def test_an_mtu_above_the_switchs_is_refused_at_the_plan_with_what_the_switch_has(
    sandbox: Running, tmp_path: Path
) -> None:
    path, example = tmp_path / "site.yaml", EXAMPLES["vmkernel_adapter"].read_text()
    large = example.replace("192.168.0.24/24}}", "192.168.0.24/24}, mtu: 9000}")
    (new,) = problems_of(path, large, sandbox)
    assert "frames of 9000 bytes don't pass a switch of 1500" in new
    said = large.replace("roce: {hosts", "roce: {mtu: 8000, hosts")
    (both,) = problems_of(path, said, sandbox)
    lines = said.splitlines()
    at = [next(n for n, line in enumerate(lines, 1) if f"mtu: {mtu}" in line) for mtu in (9000, 8000)]
    assert all(f"site.yaml:{line}:" in both for line in at), both

    path.write_text(said.replace("9000", "8000"))
    assert made(outcome := apply(path, sandbox)), endings(outcome)
    (found,) = problems_of(path, large, sandbox)  # a field that leaves the file goes back to its default
    assert "frames of 9000 bytes don't pass a switch of 1500; distributed_switch/roce writes no mtu" in found
    foreign = "\n".join(
        line for line in large.splitlines() if "vmnic1" not in line and line != "distributed_switch:"
    )
    (elsewhere,) = problems_of(path, foreign.replace("mtu: 9000", "mtu: 8500"), sandbox)
    assert "frames of 8500 bytes don't pass a switch of 8000; the mtu of roce, as it stands" in elsewhere
    assert problems_of(path, foreign.replace("mtu: 9000", "mtu: 8000"), sandbox) == []


def test_a_host_that_is_not_on_the_switch_is_refused_at_the_plan(sandbox: Running, tmp_path: Path) -> None:
    path, example = tmp_path / "site.yaml", EXAMPLES["vmkernel_adapter"].read_text()
    words = "is not on the switch roce"
    empty = example.replace("{hosts: {esx1.small.test: [vmnic1]}}", "{mtu: 1500}")
    (new,) = problems_of(path, empty, sandbox, words)
    assert "vmkernel_adapter/roce: esx1.small.test is not on the switch roce" in new
    assert "add esx1.small.test to the hosts of distributed_switch/roce" in new
    assert problems_of(path, example, sandbox, words) == []

    assert made(outcome := apply(path, sandbox)), endings(outcome)
    assert problems_of(path, empty, sandbox, words) == []  # its hosts stay
    wider = example.replace("192.168.0.24/24}", "192.168.0.24/24, esx2.small.test: 192.168.0.25/24}")
    foreign = "\n".join(
        line for line in wider.splitlines() if "vmnic1" not in line and line != "distributed_switch:"
    )
    before = sandbox.world()
    for text in (wider, wider.replace("{hosts: {esx1.small.test: [vmnic1]}}", "{mtu: 1500}"), foreign):
        (found,) = problems_of(path, text, sandbox, words)
        assert "vmkernel_adapter/roce: esx2.small.test is not on the switch roce" in found
        with pytest.raises(BfinfraError, match=words):
            apply(path, sandbox)
    assert sandbox.world() == before
    both = wider.replace("[vmnic1]}}", "[vmnic1], esx2.small.test: [vmnic1]}}")
    assert problems_of(path, both, sandbox, words) == []
    assert made(outcome := apply(path, sandbox)), endings(outcome)


CHANGED_FIELDS = [
    {"mtu": 1400},
    {"hosts": {"esx1.small.test": "192.168.0.25/24"}},
    {"hosts": {"esx1.small.test": "dhcp"}},
]
