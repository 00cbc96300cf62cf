"""Requests to the property collector, written as XML: pyVmomi would first make an object for each of
thousands of references.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from pyVmomi.SoapAdapter import SOAP_END, SOAP_START, XML_HEADER
from pyVmomi.VmomiSupport import GetWsdlName

from bfinfra.backends.vcenter import refs

VIEW = (
    "<skip>false</skip><selectSet "
    'xsi:type="TraversalSpec"><name>view</name><type>ContainerView</type><path>view</path><skip>false</skip></selectSet>'
)


def first(asked: Mapping[type[Any], Sequence[str]], objects: Iterable[str], page: int) -> str:
    """The parameters of RetrievePropertiesEx: these paths of each type, of these objects, so many in a
    page.
    """
    missing = "<reportMissingObjectsInResults>true</reportMissingObjectsInResults>"
    return (
        f"<specSet>{_wanted(asked)}{''.join(objects)}{missing}</specSet><options><maxObjects>{page}"
        "</maxObjects></options>"
    )


def following(token: str) -> str:
    """The parameters of ContinueRetrievePropertiesEx."""
    return f"<token>{escape(token)}</token>"


def followed(asked: Mapping[type[Any], Sequence[str]], objects: Iterable[str]) -> str:
    """The parameters of CreateFilter: these paths of each type, of these objects."""
    missing = "<reportMissingObjectsInResults>true</reportMissingObjectsInResults>"
    spec = f"{_wanted(asked)}{''.join(objects)}{missing}"
    return f"<spec>{spec}</spec><partialUpdates>false</partialUpdates>"


def updates(version: str, seconds: int, page: int) -> str:
    """The parameters of WaitForUpdatesEx: what changed since `version` ("": everything), waiting for it up to
    `seconds`, so many objects in an answer.
    """
    return (
        f"<version>{escape(version)}</version><options><maxWaitSeconds>{seconds}</maxWaitSeconds>"
        f"<maxObjectUpdates>{page}</maxObjectUpdates></options>"
    )


def _wanted(asked: Mapping[type[Any], Sequence[str]]) -> str:
    return "".join(
        (
            f"<propSet><type>{_type(kind)}"
            f"</type><all>false</all>{''.join(f'<pathSet>{escape(path)}</pathSet>' for path in paths)}"
            "</propSet>"
        )
        for kind, paths in asked.items()
    )


def named(kind: type[Any], moids: Iterable[str]) -> list[str]:
    """These objects, for `first`."""
    before = f"<objectSet><obj type={quoteattr(_type(kind))}>"
    return [f"{before}{escape(moid)}</obj><skip>false</skip></objectSet>" for moid in moids]


def viewed(view: object) -> str:
    """A container view and all its objects, for `first`."""
    return f'<objectSet><obj type="ContainerView">{escape(refs.moid(view))}</obj>{VIEW}</objectSet>'


def envelope(mo: object, method: str, parameters: str) -> bytes:
    """The document that calls a method of `mo`."""
    this = f"<_this type={quoteattr(_type(type(mo)))}>{escape(refs.moid(mo))}</_this>"
    return (
        f'{XML_HEADER}\n{SOAP_START}<{method} xmlns="urn:vim25">{this}{parameters}</{method}>{SOAP_END}'
    ).encode()


def _type(kind: type[Any]) -> str:
    return str(GetWsdlName(kind))
