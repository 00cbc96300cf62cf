"""Parses the OVF descriptor's XML safely: no entities, no document type, no network, bounded; with small
readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.ova import units
from bfinfra.backends.ova.source import refusal

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from bfinfra.model.errors import Refusal

NAMESPACE = "http://schemas.dmtf.org/ovf/envelope/1"
"""OVF 1.0 and 1.1, which vSphere takes; 2.0 has another one."""
ENCODINGS = frozenset({"utf-8", "us-ascii", "ascii", "iso-8859-1", "utf-16"})
DECLARED = re.compile(r"""\A(\s*<\?xml[^>]*\sencoding\s*=\s*["'])[\w.-]+(["'])""")
"""The encoding in an XML declaration."""
REPACK = "have it packed in a form that vSphere takes, for instance with ovftool"
LONGEST = 1 << 16  # characters of one text
MOST = 40_000  # tags; the descriptors of large appliances have a few thousand


def parse(path: PurePath, data: bytes) -> tuple[Element, str]:
    """The Envelope and the descriptor's text. Raises Refusal."""
    from lxml import etree  # noqa: PLC0415 - start-up is a feature

    if (count := data.count(b"<")) > MOST:
        raise refusal(
            path,
            f"its descriptor has {count} tags",
            f"more than {MOST} are not read",
            "make sure that it is an OVA",
        )
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise refusal(path, "its descriptor is no XML", shown(str(error))) from None
    info = root.getroottree().docinfo
    if info.internalDTD is not None or info.doctype:
        raise refusal(
            path, "its descriptor declares a document type", "entities may be hidden there", "do not use it"
        )
    if etree.QName(root).localname != "Envelope" or etree.QName(root).namespace != NAMESPACE:
        raise refusal(
            path,
            f"its descriptor is no OVF envelope but {shown(str(root.tag))}",
            f"vSphere takes {NAMESPACE}",
            "export it as OVF 1.0 or 1.1, for instance with ovftool",
        )
    if (info.encoding or "UTF-8").lower() not in ENCODINGS:
        raise refusal(path, f"its descriptor is encoded as {shown(str(info.encoding))}")
    text = data.decode(info.encoding or "UTF-8").removeprefix("\ufeff")
    return root, DECLARED.sub(r"\1UTF-8\2", text, count=1)  # it is sent within SOAP, which is UTF-8


def children(parent: Element, *names: str) -> Iterator[Element]:
    """The child elements with these local names."""
    for child in parent:
        if isinstance(child.tag, str) and child.tag.rpartition("}")[2] in names:
            yield child


def first(parent: Element, name: str) -> Element | None:
    """The first child element with a local name."""
    return next(children(parent, name), None)


def text(parent: Element | None, name: str) -> str:
    """The text of the first child with a local name, safe to print; "" if there is none."""
    child = first(parent, name) if parent is not None else None
    return safe(child.text) if child is not None else ""


def attribute(element: Element, name: str, otherwise: str = "") -> str:
    """An attribute by its local name in any namespace, safe to print."""
    found = next(
        (value for key, value in element.attrib.items() if str(key).rpartition("}")[2] == name), otherwise
    )
    return safe(found)


def raw(element: Element, name: str) -> str | None:
    """An attribute as it is, or None."""
    return next(
        (str(value) for key, value in element.attrib.items() if str(key).rpartition("}")[2] == name), None
    )


def yes(element: Element, name: str, *, otherwise: bool = False) -> bool:
    """A boolean attribute: `true` or `1`."""
    found = raw(element, name)
    return otherwise if found is None else found.strip().lower() in ("true", "1")


def wrong(path: PurePath, element: Element, what: str, why: str = "", next: str = REPACK) -> Refusal:
    """A refusal of one element of the descriptor: names the file, the line and the element."""
    name = str(element.tag).rpartition("}")[2]
    return refusal(path, f"line {element.sourceline} of its descriptor, {name}: {what}", why, next)


def number(path: PurePath, element: Element, value: str, what: str) -> int:
    """A whole number of at most 18 digits."""
    if not re.fullmatch(r"\s*\d{1,18}\s*", value):
        raise wrong(path, element, f"{shown(value)!r} is given as {what}", "a whole number is expected")
    return int(value)


def bytes_in(path: PurePath, element: Element, written: str, what: str) -> int:
    """The bytes of an allocation unit."""
    found = units.size(written)
    if found is None:
        why = "known: byte * 2^n, byte * 10^n, KB, MegaBytes, gibibyte and the like"
        raise wrong(path, element, f"{what} is counted in {shown(written)!r}", why)
    return found


def safe(value: object) -> str:
    """Text of the descriptor, safe for a screen: lines are kept, other control characters removed,
    bounded.
    """
    return "".join(c for c in str(value or "")[:LONGEST] if c.isprintable() or c == "\n").strip()
