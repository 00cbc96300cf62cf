"""An adapter has an address on each host."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from bfinfra.backends.vcenter.esxi_settings import Vmk
from bfinfra.kinds.vcenter import vmkernel_adapter
from bfinfra.kinds.vcenter.base.host_note import HostNote
from bfinfra.kinds.vcenter.vmkernel_adapter import Adapter, VmkernelAdapter
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key


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
        PlanContext(mark, {"port_group": ResolvedRef(Key("port_group", "p"), None, None)}, facts=("a",)),
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


CHANGED_FIELDS = [
    {"mtu": 1400},
    {"hosts": {"esx1.small.test": "192.168.0.25/24"}},
    {"hosts": {"esx1.small.test": "dhcp"}},
]
