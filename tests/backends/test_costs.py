"""What an answer costs at most, with all that is made of it: 200 MiB, for each who reads answers and each form of
answer, as large as its limit lets in; a larger one is refused by server and limit.
"""

from __future__ import annotations

import gc
import itertools
import json
from collections.abc import Callable, Iterator

import pytest
from bad_input import liar
from bad_input.memory import Taken
from msgspec import MsgspecError
from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import GetWsdlMethod

from bfinfra.backends import limits
from bfinfra.backends.kubernetes.access import Access
from bfinfra.backends.kubernetes.connection import Connection
from bfinfra.backends.kubernetes.link import Link, resource_class
from bfinfra.backends.kubernetes.resources import Resource
from bfinfra.backends.transport import TooLarge, Transport
from bfinfra.backends.vcenter.soap import Stub
from bfinfra.backends.vcenter.soap_transport import SoapTransport
from bfinfra.model.errors import Malformed
from bfinfra.model.trust import Trust
from bfinfra.sandbox.pki import Pki

pytestmark = pytest.mark.thorough
MOST = 200 << 20
MIB = 1 << 20
ENVELOPE = (
    '<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">'
    '<soapenv:Body><RetrievePropertiesExResponse xmlns="urn:vim25"><returnval>*</returnval>'
    "</RetrievePropertiesExResponse></soapenv:Body></soapenv:Envelope>"
)
SOAP = tuple(part.encode() for part in ENVELOPE.split("*"))
EMOJI = "\N{GRINNING FACE}".encode()
Read = Callable[[str, Trust, Transport], object]


def rest(url: str, trust: Trust, transport: Transport) -> object:
    """vCenter's REST API, registries, logins."""
    return transport.client(url, trust).get("/api/x").json()


def kubernetes(url: str, trust: Trust, transport: Transport) -> object:
    """A list of objects, as lightkube reads it."""
    link = Link(transport, Access(url, trust), url)
    pods = resource_class(Resource("v1", "Pod", "pods", True))
    try:
        return list(link.objects.list(pods, chunk_size=500))
    except (ValueError, TypeError, MsgspecError):
        return None  # most forms are no list of objects; what they cost until then counts


def discovery(url: str, trust: Trust, transport: Transport) -> object:
    """A page as this project reads it."""
    return Link(transport, Access(url, trust), url).raw.get("/api/v1/pods", params={"limit": "500"}).json()


def _stub(url: str, trust: Trust, transport: Transport) -> Stub:
    http = SoapTransport(transport.transport(url, trust), url, "test", transport.timeout)
    return Stub(http, url, "vim.version.version9")


COLLECTOR = vmodl.query.PropertyCollector("propertyCollector")
QUESTION = vmodl.query.PropertyCollector.FilterSpec(
    objectSet=[vmodl.query.PropertyCollector.ObjectSpec(obj=COLLECTOR)],
    propSet=[vmodl.query.PropertyCollector.PropertySpec(type=vim.VirtualMachine)],
)


def soap_rows(url: str, trust: Trust, transport: Transport) -> object:
    """A bulk read, which lxml reads."""
    return _stub(url, trust, transport).read(COLLECTOR, "RetrievePropertiesEx", "")


def soap_objects(url: str, trust: Trust, transport: Transport) -> object:
    """What pyVmomi reads."""
    info = GetWsdlMethod("urn:vim25", "RetrievePropertiesEx").info
    options = vmodl.query.PropertyCollector.RetrieveOptions()
    return _stub(url, trust, transport).InvokeMethod(COLLECTOR, info, ([QUESTION], options))


def _json(unit: bytes) -> Callable[[int, int], bytes]:
    """A list of as many as the limit lets in: by its size, or by its values."""

    def made(size: int, pieces: int) -> bytes:
        signs = sum(map(unit.count, limits.JSON)) + 1
        count = min((size - 100) // (len(unit) + 1), (pieces - 100) // signs)
        return b'{"metadata": {}, "items": [' + b",".join(itertools.repeat(unit, count)) + b"]}"

    return made


def _distinct(size: int, pieces: int) -> bytes:
    count = min(size // 24, pieces - 10)
    return b"{" + b",".join(b'"%d":"%d"' % (each, each) for each in range(count)) + b"}"


def _text(size: int, _: int) -> bytes:
    """One character makes all others four bytes wide."""
    return b'{"metadata": {}, "items": [{"a": "' + EMOJI + b"a" * (size - 100) + b'"}]}'


def _xml(unit: bytes) -> Callable[[int, int], bytes]:
    def made(size: int, pieces: int) -> bytes:
        signs = sum(map(unit.count, limits.XML))
        count = min((size - 1000) // len(unit), (pieces - 100) // signs)
        return SOAP[0] + unit * count + SOAP[1]

    return made


def _typed(kind: str) -> Callable[[int, int], bytes]:
    unit = (
        b'<objects><obj type="VirtualMachine">v</obj><propSet><name>a</name><val xsi:type="ArrayOf%s">'
        % kind.encode()
    )
    close = b"</val></propSet></objects>"

    def made(size: int, pieces: int) -> bytes:
        one = b"<%s/>" % kind.encode()
        return SOAP[0] + unit + one * min((size - 2000) // len(one), pieces - 200) + close + SOAP[1]

    return made


JSONS = {
    "lists": _json(b"[[]]"),
    "objects": _json(b'{"a":{}}'),
    "one key each": _json(b'{"a":0}'),
    "numbers": _json(b"1.5"),
    "keys": _distinct,
    "wide text": _text,
    "wide texts": _json(b'"' + EMOJI + b'aaaaaaaaaaaaaaaa"'),
}
XMLS = {
    "elements": _xml(b"<objects/>"),
    "short elements": _xml(b"<b/>"),
    "texts between": _xml(b"<b/>x"),
    "attributes": _xml(b'<b c="d"/>'),
    "text": _xml(b"<b>" + b"x" * MIB + b"</b>"),
    "wide text": _xml(b"<b>" + EMOJI + b"x" * MIB + b"</b>"),
    "machines' settings": _typed("VirtualMachineConfigInfo"),
    "hosts' abilities": _typed("HostCapability"),
}
READERS: dict[str, tuple[Read, limits.Limit, dict[str, Callable[[int, int], bytes]]]] = {
    "REST": (rest, limits.PLAIN, JSONS),
    "Kubernetes, through lightkube": (kubernetes, limits.PAGE, JSONS),
    "Kubernetes, plain": (discovery, limits.PAGE, JSONS),
    "SOAP in bulk": (soap_rows, limits.ROWS, XMLS),
    "SOAP": (soap_objects, limits.ROWS, XMLS),
}


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("liar"))


@pytest.fixture
def serve(pki: Pki) -> Iterator[Callable[[liar.Answer], tuple[str, Trust, Transport]]]:
    servers, transport = [], Transport(read_only=True)

    def make(answer: liar.Answer) -> tuple[str, Trust, Transport]:
        servers.append(liar.Liar(answer, pki))
        return servers[-1].url, Trust(ca_pem=pki.ca_pem), transport

    yield make
    for server in servers:
        server.close()
    transport.close()


def cost(read: Read, where: tuple[str, Trust, Transport]) -> tuple[int, str]:
    """Bytes at most, and why it was refused."""
    gc.collect()
    memory, refused = Taken(), ""
    try:
        kept = read(*where)
    except Malformed as error:
        kept, refused = None, str(error)
    peak = memory.peak()
    del kept
    return peak, refused


@pytest.mark.parametrize("packed", ["", "gzip"])
@pytest.mark.parametrize(
    ("who", "form"), [(who, form) for who, (_, _, forms) in READERS.items() for form in forms]
)
def test_no_answer_costs_more_than_200_mib(who: str, form: str, packed: str, serve) -> None:
    read, limit, forms = READERS[who]
    body = forms[form](limit.size, limit.pieces)
    kind = "text/xml" if "SOAP" in who else "application/json"
    answer = (
        liar.answer(liar.gzip.compress(body, 1), Content_Encoding="gzip")
        if packed
        else liar.answer(body, kind=kind)
    )
    del body
    where = serve(lambda _: [answer])
    transport_only(where)
    peak, refused = cost(read, where)
    assert peak < MOST, f"{peak >> 20} MiB"
    if who == "SOAP" and form in ("machines' settings", "hosts' abilities"):
        assert "it has objects with more than 2,000,000 fields" in refused


def transport_only(where: tuple[str, Trust, Transport]) -> None:
    """The threads, buffers and contexts of a first request are there already."""
    url, trust, transport = where
    with transport.client(url, trust) as client, client.stream("GET", "/api/x"):
        pass


@pytest.mark.parametrize("who", READERS)
def test_what_is_larger_is_refused_by_server_and_limit(who: str, serve) -> None:
    read, limit, _ = READERS[who]
    start, more = (SOAP[0], b"<b>" + b" " * MIB + b"</b>") if "SOAP" in who else (b" ", b" " * MIB)
    where = serve(lambda _: liar.chunked(itertools.chain([start], liar.forever(more))))
    peak, refused = cost(read, where)
    assert peak < MOST, f"{peak >> 20} MiB"
    assert refused.startswith(where[0].removeprefix("https://"))
    assert f"is too large; more than {limit.size >> 20} MiB came; check what answers" in refused


def test_where_objects_are_large_fewer_are_asked_for(serve) -> None:
    """500 Secrets of 64 KiB are too much for one answer, and legitimate."""
    asked: list[int] = []

    def answer(request: str) -> list[bytes]:
        size = int(request.partition("limit=")[2].split("&")[0].split(" ")[0] or 0)
        asked.append(size)
        begin = int(request.partition("continue=")[2].split("&")[0].split(" ")[0] or 0)
        items = [
            {"metadata": {"name": f"s{begin + each}"}, "data": {"a": "x" * (64 << 10)}}
            for each in range(min(size, 500 - begin))
        ]
        more = {"continue": str(begin + size)} if begin + size < 500 else {}
        return [liar.as_json({"metadata": {"resourceVersion": "1", **more}, "items": items})]

    url, trust, transport = serve(answer)
    cluster = Connection(transport, url, lambda: Access(url, trust))

    def read(size: int) -> list[object]:
        found, more = [], "0"
        while more:
            page = cluster.json("/api/v1/secrets", {"limit": str(size), "continue": more}, "application/json")
            found += page["items"]
            more = page["metadata"].get("continue", "")
        return found

    assert len(cluster.paged(read)) == 500
    assert asked == [500, *[50] * 10]
    with pytest.raises(TooLarge):
        read(500)


def test_json_is_still_read(serve) -> None:
    assert cost(rest, serve(lambda _: [liar.answer(json.dumps({"a": 1}).encode())]))[1] == ""
