"""The hardware that a descriptor asks for: processors, memory, adapters, disks, as vSphere makes them of the
default deployment option. What vSphere doesn't know is refused, or left out where it isn't required.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.ova.contents import Disk, Hardware, Network
from bfinfra.backends.ova.source import refusal
from bfinfra.backends.ova.xml import attribute, bytes_in, children, first, number, raw, text, wrong, yes

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

OTHER, PROCESSORS, MEMORY, IDE, SCSI, ETHERNET, DISK, STORAGE = 1, 3, 4, 5, 6, 10, 17, 20
"""CIM resource types."""
TYPES = frozenset({OTHER, PROCESSORS, MEMORY, IDE, SCSI, ETHERNET, DISK, STORAGE, 14, 15, 16, 21, 22, 23, 24})
"""Those that vSphere makes a device of; further ones are drives, ports, USB and video."""
SUBTYPES: Mapping[int, re.Pattern[str]] = {
    OTHER: re.compile(r"vmware\..+"),
    SCSI: re.compile(r"buslogic|lsilogic|lsilogicsas|virtualscsi"),
    ETHERNET: re.compile(r"pcnet32|vmxnet[23]?|e1000e?|vlance|flexible|sriovethernetcard"),
}
"""The kinds of a device, of which an item may name several. Anything else is refused by vSphere."""
FAMILY = re.compile(r"vmx-\d{1,3}", re.IGNORECASE)


def families(section: Element) -> tuple[str, ...]:
    """The hardware families of a section, in their order: `vmx-13 vmx-11`, separated by blanks or commas."""
    return tuple(_words(text(first(section, "System"), "VirtualSystemType")))


def hardware(
    path: PurePath, system: Element, chosen: str, disks: Mapping[str, Disk], networks: Sequence[Network]
) -> tuple[Hardware, tuple[Disk, ...]]:
    """The hardware, and its disks in the order in which the machine has them. Raises Refusal."""
    section = _section(path, system)
    cpus = memory = 0
    adapters: list[str] = []
    items = list(_known(path, _items(path, section, chosen)))
    for kind, item in items:
        if kind == PROCESSORS:
            cpus = _quantity(path, item, "the number of processors", cpus)
        elif kind == MEMORY:
            count = _quantity(path, item, "the memory", memory)
            memory = count * bytes_in(path, item, text(item, "AllocationUnits") or "MegaBytes", "memory")
        elif kind == ETHERNET:
            adapters.append(_connection(path, item, networks))
    firmware = next(
        (attribute(c, "value") for c in children(section, "Config") if attribute(c, "key") == "firmware"),
        "bios",
    )
    version = next(filter(FAMILY.fullmatch, families(section)), "")
    found = Hardware(cpus, memory, version, firmware, tuple(adapters))
    return found, tuple(_drives(path, items, disks))


def _words(written: str) -> list[str]:
    return [each for each in re.split(r"[\s,]+", written) if each]


def _section(path: PurePath, system: Element) -> Element:
    """The first hardware section of a family that vSphere knows. One that names none is taken."""
    sections = list(children(system, "VirtualHardwareSection"))
    if not sections:
        raise refusal(path, "its descriptor asks for no hardware", next="make sure that it is an appliance")
    for section in sections:
        named = families(section)
        if not named or any(map(FAMILY.fullmatch, named)):
            return section
    named = families(sections[0])
    raise wrong(
        path,
        sections[0],
        f"its hardware is of the family {shown(' '.join(named))}",
        "vSphere knows vmx-4 and its successors",
        "export it for vSphere",
    )


def _items(path: PurePath, section: Element, chosen: str) -> Iterator[Element]:
    """The hardware of a deployment option: that of all options, replaced by its own with the same id.

    An item with a bound is a limit, not hardware.
    """
    items = [
        item
        for item in children(section, "Item", "EthernetPortItem", "StorageItem")
        if (raw(item, "bound") or "normal") == "normal"
    ]
    for item in items:
        if not _id(item):
            raise wrong(path, item, "it has no InstanceID", "so nothing can refer to it")
    own = {_id(item) for item in items if chosen in attribute(item, "configuration").split()}
    there: set[str] = set()
    for item in items:
        options = attribute(item, "configuration").split()
        if chosen in options if options else _id(item) not in own:
            if _id(item) in there:
                raise wrong(path, item, f"the InstanceID {shown(_id(item))} is there twice")
            there.add(_id(item))
            yield item


def _id(item: Element) -> str:
    return text(item, "InstanceID") or text(item, "InstanceId")


def _known(path: PurePath, items: Iterator[Element]) -> Iterator[tuple[int, Element]]:
    """The resource type of each item, without what vSphere doesn't know and the machine doesn't require."""
    for item in items:
        kind = number(path, item, text(item, "ResourceType"), "the type of a device")
        subtypes, pattern = _words(text(item, "ResourceSubType").lower()), SUBTYPES.get(kind)
        fits = not subtypes or pattern is None or any(map(pattern.fullmatch, subtypes))
        if kind in TYPES and fits:
            yield kind, item
        elif yes(item, "required", otherwise=True):
            what = f"the subtype {shown(' '.join(subtypes))}" if kind in TYPES else f"the type {kind}"
            name = shown(text(item, "ElementName") or _id(item))
            raise wrong(
                path, item, f"{name} is a device of {what}", "vSphere has none", "export it for vSphere"
            )


def _quantity(path: PurePath, item: Element, what: str, before: int) -> int:
    if before:
        raise wrong(path, item, f"{what} is given twice")
    return number(path, item, text(item, "VirtualQuantity"), what)


def _connection(path: PurePath, item: Element, networks: Sequence[Network]) -> str:
    found = text(item, "Connection")
    if found and all(found != each.name for each in networks):
        why = "its network section doesn't list it, so nothing can be put in its place"
        raise wrong(path, item, f"an adapter is connected to {shown(found)}", why)
    return found


def _drives(
    path: PurePath, items: Sequence[tuple[int, Element]], disks: Mapping[str, Disk]
) -> Iterator[Disk]:
    """The disks as they hang on their controllers: by bus and unit, as vCenter numbers them."""
    buses = {
        _id(item): (kind, _place(item, "Address")) for kind, item in items if kind in (IDE, SCSI, STORAGE)
    }
    order = {IDE: 0, SCSI: 1, STORAGE: 2}
    found: list[tuple[tuple[int, int, int], Disk]] = []
    for kind, item in items:
        if kind != DISK:
            continue
        parent, resource = text(item, "Parent"), text(item, "HostResource")
        match = re.fullmatch(r"(?:ovf:)?/{1,2}disk/(.+)", resource)
        disk = disks.get(match[1]) if match else None
        if disk is None:
            raise wrong(
                path, item, f"{shown(resource) or 'nothing'} is given as its disk", "there is no such disk"
            )
        if parent and parent not in buses:
            raise wrong(path, item, f"the disk {shown(disk.id)} hangs on no controller")
        bus, address = buses.get(parent, (SCSI, 0))  # without a parent vCenter chooses one
        found.append(((order[bus], address, _place(item, "AddressOnParent")), disk))
    yield from (disk for _, disk in sorted(found, key=lambda each: each[0]))


def _place(item: Element, name: str) -> int:
    written = text(item, name)
    return int(written) if re.fullmatch(r"\d{1,9}", written) else 0
