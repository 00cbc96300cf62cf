"""SOAP over the transport: pyVmomi's types, serialiser and parser on httpx2's requests. Faults become
bfinfra's errors.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import httpx2
from lxml import etree
from lxml.etree import _Element as Element
from pyVmomi import vim
from pyVmomi.SoapAdapter import SoapDeserializer, SoapResponseDeserializer, SoapStubAdapterBase
from pyVmomi.VmomiSupport import DataObject, GetServiceVersions, GetWsdlMethod, versionIdMap

from bfinfra.backends import limits
from bfinfra.backends.vcenter import faults, queries, refs, tree
from bfinfra.backends.vcenter.reads import Reads
from bfinfra.backends.vcenter.soap_transport import SoapTransport
from bfinfra.backends.words import safe, web_page
from bfinfra.model.errors import Rejected

OLDEST = (7, 0)  # older versions silently drop newer fields (Dynamic DirectPath)
LARGEST = 1 << 20  # bytes of a list of versions
FIELDS = 2_000_000  # of all objects in an answer; a thousand events have a tenth of it


class Stub(SoapStubAdapterBase):
    """pyVmomi's stub adapter on vCenter's transport. Safe to use from several threads."""

    def __init__(
        self,
        http: SoapTransport,
        server: str,
        version: str,
        path: str = "/sdk",
        context: dict[str, str] | None = None,
    ) -> None:
        super().__init__(version)  # type: ignore[no-untyped-call]  # pyVmomi is untyped
        self.requestContext = context or {}  # pyVmomi puts it into the envelope's header
        self.http = http
        self.path = path
        self.server = server
        self.views: dict[tuple[str, ...], object] = {}
        """The session's container views, by container and types; they end with the session."""
        self.reads = Reads()
        """What was read in the session."""
        self.systems: dict[str, str] = {}
        """vCenter's id of a host in the backing of a fixed card, by host."""
        self.asking = threading.Lock()
        """Held while such an id is read: many machines are given cards of one host at the same time."""

    def InvokeMethod(self, mo: Any, info: Any, args: Any, outer: Any = None) -> Any:  # noqa: N802 - pyVmomi calls it so
        """Send one method and return its result. Raises RemoteError."""
        what = f"{info.wsdlName} on {safe(refs.moid(mo))}"
        content = self.SerializeRequest(mo, info, args)  # type: ignore[no-untyped-call]  # pyVmomi's
        answer = self.http.post(self.path, content, self._headers())
        if answer.status_code not in (200, 500) or (answer.status_code == 500 and web_page(answer.read())):
            raise faults.of_answer(answer, f"{what} failed", self.server)
        result = self._deserialised(answer.content, info, what)
        if answer.status_code == 500:
            raise faults.of_fault(result, f"{what} failed", self.server)
        return result

    def read(self, mo: object, method: str, parameters: str) -> Element:
        """Send one method with its parameters as XML, and return its results (`returnval`) as a tree that is
        read while it arrives. Raises RemoteError.
        """
        what = f"{method} on {safe(refs.moid(mo))}"
        question = queries.envelope(mo, method, parameters)
        with self.http.stream(self.path, question, self._headers()) as answer:
            if answer.status_code == 500 and not web_page(answer.read()):
                raise faults.of_fault(
                    self._deserialised(answer.read(), GetWsdlMethod("urn:vim25", method).info, what),
                    f"{what} failed",
                    self.server,
                )
            if answer.status_code != 200:
                raise faults.of_answer(answer, f"{what} failed", self.server)
            try:
                found = tree.parse(answer.iter_bytes()).find("{*}Body/*")
            except (etree.XMLSyntaxError, tree.Unfit) as error:
                raise faults.malformed(f"the answer to {what} can't be read", self.server, error) from None
        if found is None:
            raise faults.malformed(f"the answer to {what} can't be read", self.server, "it has no body")
        return found

    def _headers(self) -> dict[str, str]:
        return {"SOAPAction": self.versionId, "Content-Type": "text/xml; charset=UTF-8"}

    def _deserialised(self, document: bytes, info: Any, what: str) -> Any:
        if (
            b"<!DOCTYPE" in document or b"\0" in document
        ):  # expat would follow entities, and read encodings that hide them
            raise faults.malformed(
                f"the answer to {what} can't be read",
                self.server,
                "it declares a document type, or is not UTF-8",
            )
        if len(document) > limits.PLAIN.size:  # a bulk read's limit, which lxml can do with, is higher
            raise faults.malformed(
                f"the answer to {what} is too large",
                self.server,
                f"more than {limits.PLAIN.size >> 20} MiB came",
            )
        try:
            reader = SoapResponseDeserializer(self)
            reader.deser = _counted(self)
            return reader.Deserialize(document, info.result)
        except MemoryError:
            raise  # not the server's
        except Exception as error:  # noqa: BLE001 - pyVmomi's parser raises anything on an answer it can't place
            raise faults.malformed(
                f"the answer to {what} can't be read", self.server, f"{type(error).__name__}: {error}"
            ) from None


def _counted(stub: Stub) -> SoapDeserializer:
    """PyVmomi's parser, which counts the fields of what it makes: each object has all that its type has,
    however few were sent.
    """
    parser, made = SoapDeserializer(stub), 0
    start: Callable[[str, object], None] = parser.StartElementHandler

    def counted(tag: str, attributes: object) -> None:
        nonlocal made
        start(tag, attributes)
        if parser.stack and isinstance(parser.stack[-1], DataObject):
            made += len(vars(parser.stack[-1]))
            if made > FIELDS:
                raise ValueError(f"it has objects with more than {FIELDS:,} fields")

    vars(parser)[start.__name__] = counted
    return parser


def negotiate(answer: httpx2.Response, server: str) -> str:
    """The newest API version that both sides support, as pyVmomi names it. Raises Rejected below 7.0."""
    if answer.status_code != 200 or web_page(answer.read()):
        raise faults.of_entrance(answer, "this doesn't answer as a vCenter does", server)
    offered = _offered(answer.content, server)
    for version in GetServiceVersions("vim25"):
        if (found := versionIdMap[version]) in offered:
            if _number(found) < OLDEST:
                break
            return str(version)
    newest = max(offered, key=_number, default="none")
    raise Rejected(
        f"vSphere API {newest} is too old",
        server=server,
        why="bfinfra needs 7.0 or newer",
        next="upgrade vCenter",
    )


def _offered(document: bytes, server: str) -> set[str]:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(document[:LARGEST], parser)
    except etree.XMLSyntaxError as error:
        raise faults.malformed("the list of API versions can't be read", server, error) from None
    spaces = [n for n in root.iter("namespace") if n.findtext("name") == "urn:vim25"]
    return {str(v.text) for n in spaces for v in n.iter("version") if v.text}


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def service_instance(stub: Stub) -> Any:
    """The root object of the API."""
    return vim.ServiceInstance("ServiceInstance", stub)
