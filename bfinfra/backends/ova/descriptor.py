"""The OVF descriptor: product, properties, networks, disks, hardware, licence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.archives.tar import Member
from bfinfra.backends.ova.contents import Disk, Hardware, Network, Option, Product, Property
from bfinfra.backends.ova.source import refusal
from bfinfra.backends.ova.xml import attribute, bytes_in, children, first, number, raw, safe, text
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

PROCESSORS, MEMORY, ETHERNET = "3", "4", "10"  # CIM resource types


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
    Refusal.
    """
    systems = list(children(root, "VirtualSystem"))
    if len(systems) != 1 or first(root, "VirtualSystemCollection") is not None:
        raise refusal(
            path,
            "its descriptor does not hold exactly one virtual machine",
            next="bfinfra deploys appliances of one machine",
        )
    system, words = systems[0], _words(root)
    options = tuple(_options(root, words))
    chosen = _chosen(options)
    references = dict(_references(path, root, members))
    products = list(children(system, "ProductSection"))
    properties = _properties(path, products, words, chosen)
    return Descriptor(
        _product(next((p for p in products if text(p, "Product")), products[0] if products else None)),
        properties,
        tuple(_networks(root)),
        tuple(_disks(path, root, references, properties)),
        _hardware(path, first(system, "VirtualHardwareSection"), chosen),
        options,
        tuple(_licences(system, words)),
        dict(references.values()),
    )


def _chosen(options: Sequence[Option]) -> str:
    """The deployment option that an import uses by default: the marked one, else the first; "" without
    options.
    """
    return next((option.id for option in options if option.default), options[0].id if options else "")


def _references(
    path: PurePath, root: Element, members: Mapping[str, Member]
) -> Iterator[tuple[str, tuple[str, int]]]:
    """File id → (href, bytes)."""
    section = first(root, "References")
    for file in children(section, "File") if section is not None else ():
        href = raw(file, "href") or ""
        if raw(file, "chunkSize"):
            raise refusal(
                path,
                f"{shown(href)} is split into chunks",
                next="repack it in one piece, for instance with ovftool",
            )
        if href not in members:
            raise refusal(path, f"its descriptor refers to {shown(href)}, which it does not hold")
        size, declared = members[href].size, raw(file, "size")
        if declared is not None and number(path, declared, f"the size of {shown(href)}") != size:
            raise refusal(path, f"{href} has {size} bytes, and its descriptor says {shown(declared)}")
        yield attribute(file, "id"), (href, size)


def _disks(
    path: PurePath, root: Element, references: Mapping[str, tuple[str, int]], properties: Sequence[Property]
) -> Iterator[Disk]:
    section = first(root, "DiskSection")
    for disk in children(section, "Disk") if section is not None else ():
        name, file = attribute(disk, "diskId"), attribute(disk, "fileRef")
        if file and file not in references:
            raise refusal(
                path,
                (
                    f"its disk {shown(name)} refers to the file {shown(file)}, which its descriptor does "
                    "not list"
                ),
            )
        href, size = references[file] if file else ("", 0)
        unit = bytes_in(path, attribute(disk, "capacityAllocationUnits", "byte"), "disks")
        capacity = number(path, _capacity(path, disk, properties), f"the capacity of {shown(name)}")
        yield Disk(name, href, size, capacity * unit, attribute(disk, "format"))


def _capacity(path: PurePath, disk: Element, properties: Sequence[Property]) -> str:
    """A number, or that of the property that `${…}` names; "0" if it has no value yet."""
    written = attribute(disk, "capacity", "0")
    reference = re.fullmatch(r"\s*\$\{([^{}]+)\}\s*", written)
    if reference is None:
        return written
    for each in properties:
        if each.key == reference[1]:
            return each.default or "0"
    name = shown(attribute(disk, "diskId"))
    raise refusal(
        path, f"the capacity of its disk {name} is the property {shown(reference[1])}, which it does not have"
    )


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
    for section in sections:
        category = ""
        for child in children(section, "Category", "Property"):
            if attribute(child, "key"):
                made = _property(section, child, category, words, chosen)
                if made.key in found:
                    raise refusal(path, f"its descriptor names the property {shown(made.key)} twice")
                found[made.key] = made
            else:
                category = _worded(child, words)
    return tuple(found.values())


def _property(
    section: Element, element: Element, category: str, words: Mapping[str, str], chosen: str
) -> Property:
    parts = (attribute(section, "class"), attribute(element, "key"), attribute(section, "instance"))
    kind, qualifiers = attribute(element, "type", "string"), attribute(element, "qualifiers")
    value = _value(element, chosen)
    mine, never_empty = (
        attribute(element, "userConfigurable").lower() == "true",
        attribute(element, "required").lower() == "true",
    )
    needs = (
        never_empty
        or bool(re.search(r"MinLen\(\s*[1-9]", qualifiers, re.IGNORECASE))
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
    return kind.lower().startswith("password") or attribute(element, "password").lower() == "true"


def _hardware(path: PurePath, section: Element | None, chosen: str) -> Hardware:
    if section is None:
        raise refusal(path, "its descriptor asks for no hardware", next="make sure that it is an appliance")
    cpus = memory = 0
    adapters: list[str] = []
    for item in _items(section, chosen):
        kind = text(item, "ResourceType")
        if kind == PROCESSORS:
            cpus = number(path, text(item, "VirtualQuantity") or "0", "the number of processors")
        elif kind == MEMORY:
            units = bytes_in(path, text(item, "AllocationUnits") or "MegaBytes", "memory")
            memory = number(path, text(item, "VirtualQuantity") or "0", "the memory") * units
        elif kind == ETHERNET:
            adapters.append(text(item, "Connection"))
    firmware = next(
        (attribute(c, "value") for c in children(section, "Config") if attribute(c, "key") == "firmware"),
        "bios",
    )
    return Hardware(
        cpus, memory, text(first(section, "System"), "VirtualSystemType"), firmware, tuple(adapters)
    )


def _items(section: Element, chosen: str) -> Iterator[Element]:
    """The hardware of a deployment option: that of all options, replaced by its own with the same id.

    An item with a bound is a limit, not hardware.
    """
    items = [
        item
        for item in children(section, "Item", "EthernetPortItem")
        if (raw(item, "bound") or "normal") == "normal"
    ]
    own = {text(item, "InstanceID") for item in items if chosen in attribute(item, "configuration").split()}
    for item in items:
        options = attribute(item, "configuration").split()
        if chosen in options if options else text(item, "InstanceID") not in own - {""}:
            yield item


def _options(root: Element, words: Mapping[str, str]) -> Iterator[Option]:
    section = first(root, "DeploymentOptionSection")
    for option in children(section, "Configuration") if section is not None else ():
        yield Option(
            attribute(option, "id"),
            _worded(first(option, "Label"), words),
            attribute(option, "default").lower() == "true",
        )


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
