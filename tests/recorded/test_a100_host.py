"""QueryConfigTarget of a real host with four A100s: they have SR-IOV, and stand apart from what else is
passed through.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from lxml import etree
from pyVmomi import vim
from pyVmomi.VmomiSupport import GetServiceVersions, GetWsdlMethod
from recorded.conftest import Held
from recorded.sources import stored
from recorded.test_soap_answers import stub

from bfinfra.backends.vcenter import hardware, vgpus
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.inventory import BuiltInventory
from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.soap import device_groups
from bfinfra.sandbox.world_file import parse

SOURCE = "ESXi host with four A100s, QueryConfigTarget"
SYSTEM = "69c2ad94-7c22-3506-dd02-78ac443ae2ea"
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
ENVELOPE = (
    f'<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/" {XSI}><Body><QueryConfigTargetResponse '
    f'xmlns="urn:vim25">{{}}</QueryConfigTargetResponse></Body></Envelope>'
)


def recorded(*without: str) -> bytes:
    """The answer as it comes by SOAP; `without` these elements."""
    root = etree.fromstring(stored("esxi-a100/config-target-HostSystem-ha-host.xml").read_bytes())
    root.tag = "returnval"
    for name in without:
        for each in root.findall(name):
            root.remove(each)
    return ENVELOPE.format(etree.tostring(root).decode()).encode()


def target(answer: bytes) -> Any:
    server = stub(answer, version=GetServiceVersions("vim25")[0])  # it has fields of vSphere 8
    info = GetWsdlMethod("urn:vim25", "QueryConfigTarget").info
    return server.InvokeMethod(vim.EnvironmentBrowser("browser", server), info, (None,))


def test_all_cards_are_read(held: Held) -> None:
    found = target(recorded())
    cards = [each.pciDevice.id for each in found.sriov]
    assert cards == ["0000:8a:00.0", "0000:8c:00.0", "0000:c1:00.0", "0000:c3:00.0"]
    assert {each.systemId for each in (*found.sriov, *found.pciPassthrough)} == {SYSTEM}
    held(f"{SOURCE}: cards", [], len(cards))


@pytest.mark.parametrize("without", [(), ("pciPassthrough",), ("sriov",)])
def test_the_host_has_an_id_whatever_is_passed_through(
    without: tuple[str, ...], held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the NIC that happens to be passed through, the cards alone say it."""
    server = stub(recorded(*without))
    browser = SimpleNamespace(QueryConfigTarget=lambda _: target(recorded(*without)))
    monkeypatch.setattr(
        hardware.properties, "one", lambda *_: {"parent": "cluster", "environmentBrowser": browser}
    )
    content = SimpleNamespace(rootFolder=vim.Folder("group-d1", server))
    wrong = [] if hardware._system_id(content, vim.HostSystem("ha-host", server)) == SYSTEM else ["no id"]
    held(f"{SOURCE}: the host's id", wrong, 1)


def test_its_device_group_is_read_with_the_vgpu_of_each_card(held: Held) -> None:
    found = target(recorded()).vendorDeviceGroupInfo
    manager = SimpleNamespace(RetrieveVendorDeviceGroupInfo=lambda: found)
    groups = {name: [each["backing"] for each in devices] for name, devices in vgpus._groups(manager).items()}
    card = {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": "grid_a100-40c"}
    assert groups == {"Nvidia:2@grid_a100-40c%NVLink": [card, card]}
    held(f"{SOURCE}: device groups", [], len(groups))


def test_the_sandbox_describes_the_same_group_alike(held: Held) -> None:
    card = {"vendor": 0x10DE, "device": 0x20F1, "name": "GA100 [A100 PCIe 40GB]", "class": 0x0302}
    card |= {"memory": "40GiB", "profiles": ["grid_a100-40c"]}
    host = {
        "graphics": "sharedDirect",
        "pci": [{"id": f"0000:{bus}:00.0", **card} for bus in ("8a", "8c", "c1", "c3")],
        "device_groups": {"Nvidia:2@grid_a100-40c%NVLink": ["grid_a100-40c"] * 2},
    }
    world = {
        "datacenter": "dc",
        "users": [],
        "networks": [],
        "datastores": {"local": {"capacity": "1TiB"}},
        "vcenter": {"host": "vc.test"},
        "clusters": {"gpu": {"hosts": {"esx1.test": host}}},
    }
    inventory = BuiltInventory(parse(world, Passwords(b"seed")), Clock(0))
    (ours,) = device_groups.infos(list(inventory.hosts()))
    (there,) = target(recorded()).vendorDeviceGroupInfo
    wrong = [*_differing(there, ours, "vendorDeviceGroupInfo")]
    assert wrong == []
    held(f"{SOURCE}: a group in the sandbox", wrong, 1)


def _differing(there: Any, ours: Any, at: str) -> Iterator[str]:
    """The fields whose last word differs: the words before it are the card's name, which is the world's."""
    for info in there._GetPropertyList():
        one, other = getattr(there, info.name), getattr(ours, info.name)
        for left, right in zip(*((x if isinstance(x, list) else [x]) for x in (one, other)), strict=True):
            if hasattr(left, "_GetPropertyList"):
                yield from _differing(left, right, f"{at}.{info.name}")
            elif (left, right) != (None, None) and str(left).split()[-1:] != str(right).split()[-1:]:
                yield f"{at}.{info.name}: {left} and {right}"
