"""The shape of an answer: what stands in what, by name and type, and how often; and where two sets of answers
differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

PLAIN = (
    "ArrayOf",
    "Description",
    "HostDnsConfig",
    "OptionValue",
)  # types that some say and others leave out, as no other is possible there
Tree = Mapping[str, Sequence[Any]]
"""Name → what stands under it, as often as it is there; a leaf is empty. `device[VirtualDisk]`: of a type
that says itself what it is.
"""


def of_xml(element: Any) -> Tree:
    """Of an XML element."""
    found: dict[str, list[Tree]] = {}
    for child in element.iterchildren():
        kind = next((value for key, value in child.attrib.items() if key.endswith("}type")), "").rpartition(
            ":"
        )[2]
        name = etree.QName(child).localname
        label = f"{name}[{kind}]" if kind[:1].isupper() and not kind.startswith(PLAIN) else name
        found.setdefault(label, []).append(of_xml(child))
    return found


def of_json(value: Any) -> Tree:
    """Of a JSON value; the items of a list stand under `item`."""
    if isinstance(value, dict):
        return {name: [of_json(each)] for name, each in value.items()}
    return {"item": [of_json(each) for each in value]} if isinstance(value, list) and value else {}


def differences(real: Sequence[Tree], ours: Sequence[Tree], at: str) -> Iterator[str]:
    """A line for what all of the one have and none of the other. What only some have, and the types that a
    list holds, are no difference.
    """
    for label in sorted({label for tree in (*real, *ours) for label in tree}):
        there, here = [label in tree for tree in real], [label in tree for tree in ours]
        place = f"{at}.{label}"
        if any(there) and any(here):
            yield from differences(
                [each for tree in real for each in tree.get(label, ())],
                [each for tree in ours for each in tree.get(label, ())],
                place,
            )
        elif label.endswith("]"):
            continue
        elif all(there) and there and ours:
            yield f"{place}: the sandbox lacks it"
        elif any(here) and real:
            yield f"{place}: the sandbox alone has it"
