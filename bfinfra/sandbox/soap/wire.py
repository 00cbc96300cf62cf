"""SOAP envelopes: requests parsed into typed arguments, results and faults written by pyVmomi, which checks
every type.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import Any
from xml.parsers.expat import ParserCreate
from xml.sax.saxutils import escape

from lxml import etree
from pyVmomi import SoapAdapter

from bfinfra.sandbox.inventory.vmtypes import support, typed, vmodl

NS = "urn:vim25"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
XSD = "http://www.w3.org/2001/XMLSchema"
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
PREFIXES = {NS: "", XSI: "xsi", XSD: "xsd"}
HEAD = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<soapenv:Envelope xmlns:soapenv="{SOAP}" xmlns:xsd="{XSD}" '
    f'xmlns:xsi="{XSI}">\n<soapenv:Body>\n'
)
TAIL = "\n</soapenv:Body>\n</soapenv:Envelope>"
CLIENTS_REFERENCE = re.compile(r'(<\w+[^<>]* xsi:type=")ManagedObject"')
SAFE = etree.XMLParser(
    resolve_entities=False, no_network=True, huge_tree=True, load_dtd=False, remove_comments=True
)


class Malformed(Exception):
    """The request is not a SOAP call; str() is the reason."""


@dataclass(frozen=True)
class Invocation:
    """A parsed call: `element` holds the arguments until the method's parameters are known."""

    method: str
    this: Any
    element: Any
    version: str


def envelope(data: bytes) -> Any:
    """The root element. Raises Malformed if it is not XML, or has a document type."""
    try:
        root = etree.fromstring(data, SAFE)
    except etree.XMLSyntaxError as error:
        raise Malformed(f"the envelope is not XML: {error}") from None
    docinfo: Any = root.getroottree().docinfo
    if docinfo.doctype:
        raise Malformed("a document type is not allowed in an envelope")
    return root


def parse(root: Any, version: str, space: str = NS) -> Invocation:
    """The call in an envelope, of the API with this namespace. Raises Malformed if there is none."""
    body = root.find(f"{{{SOAP}}}Body")
    call = next(iter(body), None) if body is not None else None
    if call is None:
        raise Malformed("the envelope has no body")
    this = call.find("{*}_this")
    if this is None:
        raise Malformed(f"{local(call)} has no _this")
    kind = (this.get("type") or "").rpartition(":")[2]
    try:
        ref = support.GetWsdlType(space, kind)((this.text or "").strip())
    except KeyError:
        raise Malformed(f"no type {kind!r} in {space}") from None
    return Invocation(local(call), ref, call, version)


def local(element: Any) -> str:
    """An element's name without its namespace."""
    return str(etree.QName(element).localname)


def arguments(call: Invocation, params: Any) -> dict[str, Any]:
    """The arguments by parameter name, as pyVmomi's types. InvalidArgument where one is missing or can't be
    read.
    """
    elements: dict[str, list[Any]] = {}
    for each in call.element:
        elements.setdefault(local(each), []).append(each)
    found = {}
    for param in params:
        given = elements.get(param.name, [])
        if not given and not param.flags & support.F_OPTIONAL and not issubclass(param.type, list):
            raise vmodl.fault.InvalidArgument(
                invalidProperty=param.name, msg=f"{call.method}: the argument {param.name} is missing"
            )
        found[param.name] = argument(given, param)
    return found


def argument(elements: list[Any], param: Any) -> Any:
    """One argument: None, a value or an array."""
    try:
        if issubclass(param.type, list):
            return param.type([value(each, param.type.Item) for each in elements])
        return value(elements[0], param.type) if elements else None
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise vmodl.fault.InvalidArgument(
            invalidProperty=param.name, msg=f"can't read {param.name}: {error!r}"[:300]
        ) from None


def value(element: Any, kind: Any) -> Any:
    """One element as a typed value."""
    parser = ParserCreate(namespace_separator=SoapAdapter.NS_SEP)
    reader = SoapAdapter.SoapDeserializer()
    reader.Deserialize(parser, kind)
    parser.Parse(etree.tostring(element, with_tail=False, encoding="utf-8"), True)
    return reader.GetResult()


def written(name: str, result: object, kind: object, version: str, flags: int = 0) -> str:
    """A value as an element (a list as one element an item). Raises TypeError if it lacks a required
    field.
    """
    info = support.Object(name=name, index=-1, type=kind, flags=flags, version=version)
    return as_a_server(
        SoapAdapter.SerializeToStr(typed(result, kind), info, version, prefixes(version)), version
    )


def prefixes(version: str) -> dict[str, str]:
    """Namespaces and their prefixes in answers of an API's version: its own has none."""
    space = support.GetWsdlNamespace(version)
    return PREFIXES if space == NS else {space: "", XSI: "xsi", XSD: "xsd"}


def as_a_server(text: str, version: str) -> str:
    """Return pyVmomi's text as vCenter writes it: without a version on the outermost element and without
    references called ManagedObject.
    """
    text = text.replace(f' versionId="{support.versionIdMap[version]}"', "", 1)
    return CLIENTS_REFERENCE.sub(r'\1ManagedObjectReference"', text) if '"ManagedObject"' in text else text


def answer(method: str, content: str, space: str = NS) -> bytes:
    """The envelope of a result."""
    return f'{HEAD}<{method}Response xmlns="{space}">{content}</{method}Response>{TAIL}'.encode()


def defect(error: Exception, method: str, version: str) -> bytes:
    """The envelope of a fault for a defect of the sandbox itself, whose trace goes to the log."""
    traceback.print_exception(error)
    text = f"{method}: {error!r}"[:300]
    return fault(vmodl.fault.SystemError(reason=repr(error)[:300], msg=text), version)


def fault(error: Any, version: str) -> bytes:
    """The envelope of a fault."""
    message = escape(str(error.msg or type(error).__name__.rpartition(".")[2]))
    name = support.GetWsdlName(type(error)) + "Fault"
    info = support.Object(name=name, type=object, version=version, flags=0)
    error.msg = None
    try:
        detail = as_a_server(
            SoapAdapter.SerializeFaultDetail(error, info, version, prefixes(version)), version
        )
    finally:
        error.msg = message
    detail = detail.replace(f"<{name} ", f'<{name} xmlns="{support.GetWsdlNamespace(version)}" ', 1)
    return (
        f"{HEAD}<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>{message}"
        f"</faultstring><detail>{detail}</detail></soapenv:Fault>{TAIL}"
    ).encode()
