"""Parses the OVF descriptor's XML safely: no entities, no document type, no network, bounded; with small
readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.ova.source import refusal

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

NAMESPACES = frozenset({"http://schemas.dmtf.org/ovf/envelope/1", "http://schemas.dmtf.org/ovf/envelope/2"})
ENCODINGS = frozenset({"utf-8", "us-ascii", "ascii", "iso-8859-1", "utf-16"})
LONGEST = 1 << 16  # characters of one text
MOST = 40_000  # tags; the descriptors of large appliances have a few thousand
UNITS = {
    "byte": 1,
    "bytes": 1,
    "kilobytes": 2**10,
    "megabytes": 2**20,
    "gigabytes": 2**30,
    "terabytes": 2**40,
}


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
    if etree.QName(root).localname != "Envelope" or etree.QName(root).namespace not in NAMESPACES:
        raise refusal(
            path,
            f"its descriptor is no OVF envelope but {shown(str(root.tag))}",
            f"known: {', '.join(sorted(NAMESPACES))}",
        )
    if (info.encoding or "UTF-8").lower() not in ENCODINGS:
        raise refusal(path, f"its descriptor is encoded as {shown(str(info.encoding))}")
    return root, data.decode(info.encoding or "UTF-8").removeprefix("\ufeff")


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


def number(path: PurePath, value: str, what: str) -> int:
    """A whole number of at most 18 digits."""
    if not re.fullmatch(r"\s*\d{1,18}\s*", value):
        raise refusal(path, f"its descriptor gives {shown(value)!r} as {what}", "a whole number is expected")
    return int(value)


def bytes_in(path: PurePath, units: str, what: str) -> int:
    """`byte * 2^20`, `MegaBytes` → bytes."""
    match = re.fullmatch(r"\s*byte\s*\*\s*2\s*\^\s*(\d{1,2})\s*", units)
    found = 2 ** int(match[1]) if match else UNITS.get(units.strip().lower())
    if found is None:
        raise refusal(
            path,
            f"its descriptor counts {what} in {shown(units)!r}",
            "known: byte * 2^n, MegaBytes, GigaBytes",
        )
    return found


def safe(value: object) -> str:
    """Text of the descriptor, safe for a screen: lines are kept, other control characters removed,
    bounded.
    """
    return "".join(c for c in str(value or "")[:LONGEST] if c.isprintable() or c == "\n").strip()
