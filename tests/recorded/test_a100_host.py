"""QueryConfigTarget of a real host with four A100s: they have SR-IOV, and stand apart from what else is
passed through.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from lxml import etree
from pyVmomi import vim
from pyVmomi.VmomiSupport import GetServiceVersions, GetWsdlMethod
from recorded.conftest import Held
from recorded.sources import stored
from recorded.test_soap_answers import stub

from bfinfra.backends.vcenter import hardware

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
