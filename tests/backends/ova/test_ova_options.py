"""Hardware of deployment options, and capacities that a property gives. (DSP0243, sections 9.1 and 9.8)"""

from __future__ import annotations

from pathlib import Path

import pytest
from ova_packing import OVF, pack, parts

from bfinfra.backends.ova import Hardware, Ova, read
from bfinfra.model.errors import Refusal
from bfinfra.sandbox.soap import ovf_descriptor, ovf_hardware

ITEM = (
    "<Item "
    'ovf:configuration="{option}"><rasd:InstanceID>{id}</rasd:InstanceID><rasd:ResourceType>{kind}</rasd:ResourceType><rasd:VirtualQuantity>{n}</rasd:VirtualQuantity></Item>'
)
NICS = (
    "<Item "
    'ovf:configuration="{option}"><rasd:Connection>{network}</rasd:Connection><rasd:InstanceID>9</rasd:InstanceID><rasd:ResourceType>10</rasd:ResourceType></Item>'
)


def item(option: str, number: int, kind: int, n: int) -> str:
    made = ITEM.format(option=option, id=number, kind=kind, n=n)
    return made if option else made.replace(' ovf:configuration=""', "")


def with_items(*items: str) -> str:
    head, rest = OVF.split("      <Item>", 1)
    return head + "".join(items) + rest[rest.index("      <vmw:Config") :]


def opened(tmp_path: Path, text: str) -> Ova:
    return read(pack(tmp_path / "a.ova", parts(text)))


def both(tmp_path: Path, text: str) -> tuple[int, int]:
    """Processors and GiB of memory: what bfinfra reads, which is what the sandbox's vCenter makes."""
    hardware, descriptor = opened(tmp_path, text).hardware, ovf_descriptor.parse(text)
    found = (hardware.cpus, hardware.memory >> 20)
    assert found == (ovf_hardware.quantity(descriptor, 3, 0), ovf_hardware.quantity(descriptor, 4, 0))
    return found


def test_hardware_is_that_of_the_default_option(tmp_path: Path) -> None:
    items = [
        item(option, n, kind, size)
        for option, cpus, memory in (("large", 16, 4096), ("small", 8, 1024))
        for n, kind, size in ((1, 3, cpus), (2, 4, memory))
    ]
    assert both(tmp_path, with_items(*items)) == (8, 1024)


def test_the_first_option_counts_where_none_is_the_default(tmp_path: Path) -> None:
    text = with_items(item("large", 1, 3, 16), item("small", 1, 3, 8), item("", 2, 4, 512)).replace(
        ' ovf:default="true"', ""
    )
    assert both(tmp_path, text) == (8, 512)


def test_an_options_own_item_replaces_the_general_one_of_its_id(tmp_path: Path) -> None:
    assert both(
        tmp_path, with_items(item("small large", 1, 3, 8), item("", 1, 3, 2), item("", 2, 4, 512))
    ) == (8, 512)


def test_bounds_are_no_hardware(tmp_path: Path) -> None:
    bound = item("", 2, 4, 64).replace("<Item>", '<Item ovf:bound="min">')
    assert both(tmp_path, with_items(item("", 1, 3, 2), item("", 2, 4, 512), bound)) == (2, 512)


def test_adapters_of_other_options_are_not_there(tmp_path: Path) -> None:
    text = with_items(
        NICS.format(option="small", network="Management"), NICS.format(option="large", network="Data")
    )
    assert opened(tmp_path, text).hardware == Hardware(0, 0, "vmx-17", "efi", ("Management",))


@pytest.mark.parametrize(("value", "gib"), [('ovf:value="7"', 7), ("", 0)])
def test_a_capacity_can_be_a_property_s(tmp_path: Path, value: str, gib: int) -> None:
    text = OVF.replace('ovf:capacity="50"', 'ovf:capacity="${disksize}"').replace(
        '<Property ovf:key="plain"',
        f'<Property ovf:key="disksize" ovf:type="uint16" {value}/><Property ovf:key="plain"',
    )
    assert opened(tmp_path, text).disks[0].capacity == gib << 30
    assert ovf_descriptor.parse(text).disks["vmdisk1"].capacity == gib << 30


def test_a_capacity_follows_the_option_s_value(tmp_path: Path) -> None:
    given = '<Value ovf:configuration="small" ovf:value="3"/><Value ovf:configuration="large" ovf:value="9"/>'
    text = OVF.replace('ovf:capacity="50"', 'ovf:capacity="${disksize}"').replace(
        '<Property ovf:key="plain"',
        (
            f'<Property ovf:key="disksize" ovf:type="uint16" ovf:value="1">{given}</Property><Property '
            'ovf:key="plain"'
        ),
    )
    assert opened(tmp_path, text).disks[0].capacity == 3 << 30
    assert ovf_descriptor.parse(text).disks["vmdisk1"].capacity == 3 << 30


def test_a_capacity_of_a_property_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        Refusal, match="the capacity of its disk vmdisk1 is the property gone, which it does not have"
    ):
        opened(tmp_path, OVF.replace('ovf:capacity="50"', 'ovf:capacity="${gone}"'))
