"""Options of hosts are put back as they were."""

from __future__ import annotations

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from pydantic import ValidationError
from rights.given import administrator

from bfinfra.backends.vcenter.esxi_settings import Vmk
from bfinfra.kinds.vcenter import host_option, vmkernel_adapter
from bfinfra.kinds.vcenter.base.host_note import HostNote
from bfinfra.kinds.vcenter.base.host_setting import HostValue
from bfinfra.kinds.vcenter.host_option import HostOption
from bfinfra.kinds.vcenter.vmkernel_adapter import Adapter
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

MARK = Mark("s", "host_option/pvrdma")
KEY = "Net.PVRDMAVmknic"


def option(**changes):
    return host_option.Spec(**{"key": KEY, "value": "vmk3", "hosts": ["a"], **changes})


def existing(now, note=None, host="a", key=KEY):
    return host_option.State(
        mark=note.mark if note else None, settings=(HostValue(host, "host-1", key, now, note),)
    )


def decided(spec, state, **needs):
    return HostOption.steps("pvrdma", spec, state, PlanContext(MARK, needs, facts=("a", "b")))


@pytest.mark.parametrize("before", ["", "vmk0", "a b=c", "ümlaut", "%20"])
def test_what_was_there_before_is_noted_and_put_back(before):
    (step,) = decided(option(), existing(before))
    note = HostNote.decode(step.note)
    assert note and note.before == before
    (back,) = decided(None, existing("vmk3", note))
    assert (back.value, back.same) == (before, False)


def test_a_second_change_remembers_the_first_value():
    (step,) = decided(option(value="vmk4"), existing("vmk3", HostNote(MARK, "vmk0")))
    assert HostNote.decode(step.note).before == "vmk0"


def test_what_somebody_put_back_already_only_loses_its_note():
    (back,) = decided(None, existing("vmk0", HostNote(MARK, "vmk0")))
    assert back.same
    assert back.changes == ()


def test_another_key_is_set_after_which_the_first_is_put_back():
    state = host_option.State(
        mark=MARK,
        settings=(*existing("vmk3", HostNote(MARK, "")).settings, HostValue("a", "host-1", "Net.Other", "0")),
    )
    first, second = decided(option(key="Net.Other", value="1"), state)
    assert (first.key, first.value, second.key, second.value) == ("Net.Other", "1", KEY, "")


def test_the_adapters_device_is_the_value_once_the_adapter_exists():
    key = Key("vmkernel_adapter", "roce")
    spec = option(value=None, adapter="roce")
    (step,) = decided(spec, existing(""), adapter=ResolvedRef(key, None, None))
    assert step.value == Unknown(key, "device on a")
    state = vmkernel_adapter.State(
        port_group="p", adapters={"a": Adapter("host-1", Vmk("vmk3", "k", "dhcp", 1500), None)}
    )
    (step,) = decided(spec, existing(""), adapter=ResolvedRef(key, None, state))
    assert step.value == "vmk3"


@pytest.mark.parametrize(
    ("spec", "state", "says"),
    [
        (option(hosts=["c"]), None, "no host c"),
        (option(), existing(None), "has no Net.PVRDMAVmknic"),
        (option(), existing("x", HostNote(Mark("other", "host_option/x"), "")), "set by another"),
    ],
)
def test_what_can_not_be_set_is_refused(spec, state, says):
    with pytest.raises(Refusal, match=says):
        decided(spec, state)


def test_value_or_adapter():
    with pytest.raises(ValidationError, match="value or adapter"):
        option(adapter="x")


def test_the_option_follows_the_adapter_and_is_put_back_before_it_goes(sandbox, tmp_path):
    site = yaml.safe_load(EXAMPLES["vmkernel_adapter"].read_text())
    site["host_option"] = {"pvrdma": {"key": KEY, "adapter": "roce", "hosts": ["esx1.small.test"]}}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    outcome = apply(tmp_path / "site.yaml", sandbox)
    assert made(outcome), endings(outcome)
    assert value(sandbox) == "vmk1"
    assert plan(tmp_path / "site.yaml", sandbox).pending == ()
    outcome = apply(tmp_path / "site.yaml", sandbox, destroy=True)
    assert made(outcome), endings(outcome)
    assert value(sandbox) == ""


def value(sandbox):
    with administrator(sandbox) as si:
        host = si.content.searchIndex.FindByInventoryPath("/dc/host/farm/esx1.small.test")
        return host.configManager.advancedOption.QueryOptions(KEY)[0].value


CHANGED_FIELDS = [{"value": "vmk4"}, {"key": "Net.PVRDMAVmknic", "hosts": ["esx2.small.test"]}]
