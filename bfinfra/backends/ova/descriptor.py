"""The OVF descriptor: product, properties, networks, disks, hardware, licence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.archives.tar import Member
from bfinfra.backends.ova import references
from bfinfra.backends.ova.contents import Disk, Hardware, Network, Option, Product, Property
from bfinfra.backends.ova.hardware import hardware
from bfinfra.backends.ova.rules import rules
from bfinfra.backends.ova.source import refusal
from bfinfra.backends.ova.xml import NAMESPACE, attribute, children, first, raw, safe, text, wrong, yes
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

VMW = "http://www.vmware.com/schema/ovf"
ENVELOPE = frozenset({"DiskSection", "NetworkSection", "DeploymentOptionSection"})
SYSTEM = frozenset(
    {
        "AnnotationSection",
        "EulaSection",
        "InstallSection",
        "OperatingSystemSection",
        "ProductSection",
        "VirtualHardwareSection",
    }
)
"""The sections of OVF 1 that vSphere reads, by their place."""
KNOWN = "known: string, boolean, password, ip, int, uint8 to uint64, sint8 to sint64, real32, real64"
TYPES = re.compile(
    r"(boolean|string|password|ip|expression|int|real|[us]?int(8|16|32|64)|real(32|64))(\W.*)?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Descriptor:
    """The contents of an Envelope."""

    product: Product
    properties: tuple[Property, ...]
    networks: tuple[Network, ...]
    disks: tuple[Disk, ...]
    hardware: Hardware
    options: tuple[Option, ...]
    eula: tuple[str, ...]
    files: Mapping[str, int]


def describe(path: PurePath, root: Element, members: Mapping[str, Member]) -> Descriptor:
    """The Envelope's contents. Every file that it refers to must be a member of the given size. Raises
    Refusal for what vSphere, or bfinfra, doesn't take.
    """
    system = _system(path, root)
    words, networks = _words(root), tuple(_networks(root))
    options = tuple(_options(root, words))
    chosen = _chosen(options)
    found = references.files(path, root, members)
    products = list(children(system, "ProductSection"))
    properties = _properties(path, products, words, chosen)
    disks = references.disks(path, root, found, properties)
    machine, attached = hardware(path, system, chosen, disks, networks)
    return Descriptor(
        _product(next((p for p in products if text(p, "Product")), products[0] if products else None)),
        properties,
        networks,
        attached,
        machine,
        options,
        tuple(_licences(system, words)),
        dict(found.values()),
    )


def _system(path: PurePath, root: Element) -> Element:
    """The one machine. Raises Refusal for several, and for a section that must be understood and isn't."""
    systems = list(children(root, "VirtualSystem"))
    if len(systems) != 1 or first(root, "VirtualSystemCollection") is not None:
        raise refusal(
            path,
            "its descriptor does not hold exactly one virtual machine",
            next="bfinfra deploys appliances of one machine",
        )
    for parent, own in ((root, ENVELOPE), (systems[0], SYSTEM)):
        for section in parent:
            space, _, name = str(section.tag)[1:].rpartition("}")
            known = name in own if space == NAMESPACE else space == VMW
            if name.endswith("Section") and not known and yes(section, "required", otherwise=True):
                why = "it must be understood by whoever deploys it, and vSphere doesn't here"
                raise wrong(path, section, f"{shown(name)} of {shown(space)} is required", why)
    return systems[0]


def _chosen(options: Sequence[Option]) -> str:
    """The deployment option that an import uses by default: the marked one, else the first; "" without
    options.
    """
    return next((option.id for option in options if option.default), options[0].id if options else "")


def _networks(root: Element) -> Iterator[Network]:
    section = first(root, "NetworkSection")
    for network in children(section, "Network") if section is not None else ():
        yield Network(attribute(network, "name"), text(network, "Description"))


def _product(section: Element | None) -> Product:
    return Product(
        text(section, "Product"),
        text(section, "Vendor"),
        text(section, "Version"),
        text(section, "FullVersion"),
    )


def _properties(
    path: PurePath, sections: list[Element], words: Mapping[str, str], chosen: str
) -> tuple[Property, ...]:
    found: dict[str, Property] = {}
    names = [(attribute(each, "class"), attribute(each, "instance")) for each in sections]
    for section, name in zip(sections, names, strict=True):
        if names.count(name) > 1:
            raise wrong(path, section, f"there is another one of the class {shown(name[0])!r}")
        category = ""
        for child in children(section, "Category", "Property"):
            if child.tag.endswith("Property"):
                made = _property(section, child, category, words, chosen)
                if made.key in found:
                    raise wrong(path, child, f"its descriptor names the property {shown(made.key)} twice")
                if not attribute(child, "key"):
                    raise wrong(path, child, "it has no key", "so it can't be set")
                if not TYPES.fullmatch(made.type):
                    raise wrong(path, child, f"{shown(made.key)} is of the type {shown(made.type)}", KNOWN)
                found[made.key] = made
            else:
                category = _worded(child, words)
    return tuple(found.values())


def _property(
    section: Element, element: Element, category: str, words: Mapping[str, str], chosen: str
) -> Property:
    parts = (attribute(section, "class"), attribute(element, "key"), attribute(section, "instance"))
    kind, qualifiers = attribute(element, "type"), attribute(element, "qualifiers")
    value = _value(element, chosen)
    mine, never_empty = yes(element, "userConfigurable"), yes(element, "required")
    needs = (
        never_empty
        or (rules(kind, qualifiers).least or 0) > 0
        or bool(re.fullmatch(r"[us]?int\d*|real\d*", kind, re.IGNORECASE))
    )
    return Property(
        ".".join(part for part in parts if part),
        kind,
        needs and mine and not value,
        mine,
        _hidden(element, kind),
        safe(value),
        _worded(first(element, "Label"), words),
        _worded(first(element, "Description"), words),
        category,
        qualifiers,
    )


def _value(element: Element, chosen: str) -> str:
    """Its default. The deployment option's value comes first."""
    values = {
        raw(value, "configuration") or "": raw(value, "value") or "" for value in children(element, "Value")
    }
    own = raw(element, "value")
    return values.get(chosen, values.get("", "") if own is None else own)


def _hidden(element: Element, kind: str) -> bool:
    return kind.lower().startswith("password") or yes(element, "password")


def _options(root: Element, words: Mapping[str, str]) -> Iterator[Option]:
    section = first(root, "DeploymentOptionSection")
    for option in children(section, "Configuration") if section is not None else ():
        yield Option(attribute(option, "id"), _worded(first(option, "Label"), words), yes(option, "default"))


def _licences(system: Element, words: Mapping[str, str]) -> Iterator[str]:
    for section in children(system, "EulaSection"):
        if licence := _worded(first(section, "License"), words):
            yield licence


def _words(root: Element) -> dict[str, str]:
    """Message id → text, preferably English."""
    bundles = sorted(
        children(root, "Strings"), key=lambda s: not attribute(s, "lang").lower().startswith("en")
    )
    found: dict[str, str] = {}
    for bundle in bundles:
        for message in children(bundle, "Msg"):
            found.setdefault(attribute(message, "msgid"), safe(message.text))
    return found


def _worded(element: Element | None, words: Mapping[str, str]) -> str:
    if element is None:
        return ""
    return words.get(attribute(element, "msgid"), "") or safe(element.text)
