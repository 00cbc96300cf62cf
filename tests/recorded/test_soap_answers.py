"""SOAP answers of vCenter 5.5 to 6.7 and ESXi 6.7, recorded by pyVmomi's own tests: what bfinfra's readers
make of them, beside what pyVmomi makes.
"""

from __future__ import annotations

import functools
import re
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from pyVmomi import vim, vmodl
from pyVmomi.SoapAdapter import SoapResponseDeserializer
from pyVmomi.VmomiSupport import DataObject, GetWsdlMethod, ManagedObject, binary
from recorded.conftest import Held
from recorded.sources import Exchange, cassette, fetched

from bfinfra.backends.vcenter import policies, properties, soap, tree
from bfinfra.backends.vcenter.soap_transport import SoapTransport
from bfinfra.model.errors import Denied, Rejected, RemoteError

SOURCE = "pyvmomi 8.0.2.0.1, vcr cassettes"
READS = ("RetrievePropertiesEx", "ContinueRetrievePropertiesEx")
VERSION = "vim.version.v7_0"
MADE_UP = (None, False, 0, "")
"""What pyVmomi sets where a server, older than the attribute, sends nothing."""


@functools.cache
def recorded() -> tuple[Exchange, ...]:
    folder = fetched("sdist/pyvmomi-8.0.2.0.1") / "pyvmomi-8.0.2.0.1/tests/fixtures"
    files = sorted(folder.glob("*.yaml"))
    assert len(files) == 22
    return tuple(each for file in files for each in cassette(file.name, file.read_text()))


def method(each: Exchange) -> str:
    found = re.search(r"<(?:soapenv:)?Body>\s*<(\w+)", each.asked)
    return found[1] if found else ""


def asked(*methods: str) -> list[Exchange]:
    return [each for each in recorded() if each.method == "POST" and (not methods or method(each) in methods)]


def stub(answer: bytes, status: int = 200, version: str = VERSION) -> soap.Stub:
    """bfinfra's stub on a server that says this."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=answer))
    http = SoapTransport(transport, "https://vc.test", "test", httpx2.Timeout(5))
    return soap.Stub(http, "vc.test", version)


def content(answer: bytes, status: int = 200) -> Any:
    made = stub(answer, status)
    collector = vmodl.query.PropertyCollector("propertyCollector", made)
    return SimpleNamespace(rootFolder=vim.Folder("group-d1", made), propertyCollector=collector)


def pages(each: Exchange) -> Any:
    """What pyVmomi's own parser makes of an answer."""
    info = GetWsdlMethod("urn:vim25", method(each)).info
    return SoapResponseDeserializer(stub(b"")).Deserialize(each.answer, info.result)


def differences(ours: Any, theirs: Any, at: str) -> list[str]:
    """Where a value of bfinfra's readers is not pyVmomi's. Binary values and names of types are not read in
    bulk.
    """
    if isinstance(theirs, DataObject):
        if tree.kind_of(ours) is not type(theirs):
            return [f"{at}: {tree.kind_of(ours).__name__} is no {type(theirs).__name__}"]
        plain = [each for each in theirs._GetPropertyList() if each.type not in (binary, type)]
        pairs = ((each.name, getattr(ours, each.name), getattr(theirs, each.name)) for each in plain)
        found = [(name, one, other) for name, one, other in pairs if one is not None or other not in MADE_UP]
        return [wrong for name, one, other in found for wrong in differences(one, other, f"{at}.{name}")]
    if isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [f"{at}: {len(ours)} of {len(theirs)}"]
        return [
            wrong
            for n, (one, other) in enumerate(zip(ours, theirs, strict=True))
            for wrong in differences(one, other, f"{at}.{n}")
        ]
    if isinstance(theirs, ManagedObject):
        return (
            []
            if (type(ours), ours._moId) == (type(theirs), theirs._moId)
            else [f"{at}: {ours} is not {theirs}"]
        )
    return [] if ours == theirs else [f"{at}: {ours!r} is not {theirs!r}"]


def bulk(answer: bytes) -> dict[tuple[str, str], Any]:
    """What bfinfra's bulk reader makes of an answer: id and path → value."""
    here = content(answer)
    page = tree.parse([answer]).find("{*}Body/*/{*}returnval")
    objects = [] if page is None else page.iterchildren("{*}objects")
    rows = [properties._row(each, here, here.rootFolder._stub) for each in objects]
    return {(row.moid, path): value for row in rows if row for path, value in row.values.items()}


def test_bulk_reads_are_what_pyvmomi_reads(held: Held) -> None:
    wrong, answers = [], [each for each in asked(*READS) if each.status == 200]
    for each in answers:
        theirs, values = pages(each), bulk(each.answer)
        expected = {
            (o.obj._moId, p.name): p.val for o in (theirs.objects if theirs else ()) for p in o.propSet
        }
        found = [str(key) for key in values.keys() ^ expected.keys()]
        found += [
            diff
            for key, value in expected.items()
            for diff in differences(values.get(key), value, ".".join(key))
        ]
        wrong += [f"{each.at}: {found[0]}"] if found else []
    held(f"{SOURCE}: bulk reads", wrong, len(answers))


def test_every_other_answer_is_taken(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions, contents, views, storage policies: what the stub returns is what pyVmomi reads; a fault is an
    error of bfinfra's.
    """
    wrong, answers = [], [each for each in asked() if method(each) not in READS]
    for each in answers:
        space, version = (
            ("urn:pbm", policies.VERSION) if method(each).startswith("Pbm") else ("urn:vim25", VERSION)
        )
        info, server = GetWsdlMethod(space, method(each)).info, stub(each.answer, each.status, version)
        monkeypatch.setattr(server, "SerializeRequest", lambda *_, asked=each.asked: asked.encode())
        try:
            ours = server.InvokeMethod(vim.ServiceInstance("ServiceInstance", server), info, ())
        except Denied as error:
            wrong += [] if each.status == 500 and b"InvalidLogin" in each.answer else [f"{each.at}: {error}"]
        except RemoteError as error:
            wrong.append(f"{each.at}: {error}")
        else:
            theirs = SoapResponseDeserializer(stub(b"", version=version)).Deserialize(
                each.answer, info.result
            )
            wrong += (
                [] if each.status == 200 and differences(ours, theirs, "") == [] else [f"{each.at}: {ours!r}"]
            )
    held(f"{SOURCE}: sessions, contents, faults", wrong, len(answers))


def test_servers_before_7_are_refused_with_a_sentence(held: Held) -> None:
    """All that were recorded are: by the newest of their own list of versions."""
    wrong, lists = [], [each for each in recorded() if each.uri.endswith("vimServiceVersions.xml")]
    newest = {re.findall(rb"<version>([^<]*)", each.answer)[0].decode() for each in lists}
    assert newest == {"5.5", "6.0", "6.5", "6.7"}
    for each in lists:
        offered = re.findall(rb"<version>([^<]*)", each.answer)[0].decode()
        try:
            wrong.append(
                f"{each.at}: {soap.negotiate(httpx2.Response(each.status, content=each.answer), 'vc.test')}"
            )
        except Rejected as error:
            wrong += (
                []
                if f"vSphere API {offered} is too old" in str(error) and "7.0" in str(error)
                else [f"{each.at}: {error}"]
            )
    held(f"{SOURCE}: lists of versions", wrong, len(lists))


def test_a_server_that_answers_otherwise_is_reported_as_no_vcenter(held: Held) -> None:
    """A proxy's page and a 404, in place of the list of versions."""
    wrong, pages_ = (
        [],
        [
            each
            for each in recorded()
            if each.method == "GET" and not each.uri.endswith("vimServiceVersions.xml")
        ],
    )
    for each in pages_:
        try:
            wrong.append(
                f"{each.at}: {soap.negotiate(httpx2.Response(each.status, content=each.answer), 'vc.test')}"
            )
        except RemoteError:
            continue
    held(f"{SOURCE}: pages of proxies", wrong, len(pages_))
