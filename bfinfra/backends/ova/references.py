"""The files that a descriptor refers to, and the disks that they fill. Every attribute that decides whether
vSphere takes them is read here, before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.archives.tar import Member
from bfinfra.backends.ova.contents import Disk, Property
from bfinfra.backends.ova.xml import attribute, bytes_in, children, first, number, raw, wrong

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
"""The beginning of an address: a scheme, or a host."""
File = tuple[str, int]
"""The member's name, and its bytes."""


def files(path: PurePath, root: Element, members: Mapping[str, Member]) -> dict[str, File]:
    """File id → file. Each must be a member of the archive, whole, not packed, and as large as it says.
    Raises Refusal.
    """
    found: dict[str, File] = {}
    named: set[str] = set()
    section = first(root, "References")
    for each in children(section, "File") if section is not None else ():
        ident, name = attribute(each, "id"), _member(path, each, members)
        if not ident or ident in found:
            what = f"the id {shown(ident)} is there twice" if ident else "it has no id"
            raise wrong(path, each, what, "so it isn't clear which disk it fills")
        if name in named:
            raise wrong(path, each, f"{name} is listed twice")
        _whole(path, each, name)
        declared, size = raw(each, "size"), members[name].size
        if declared is not None and number(path, each, declared, f"the size of {name}") != size:
            raise wrong(path, each, f"{name} has {size} bytes, and its descriptor says {shown(declared)}")
        named.add(name)
        found[ident] = (name, size)
    return found


def _member(path: PurePath, file: Element, members: Mapping[str, Member]) -> str:
    """The member that an `href` names: as it is written, or with its `%20` decoded."""
    href = raw(file, "href") or ""
    if not href:
        raise wrong(path, file, "it names no file", "it has no href")
    if ELSEWHERE.match(href):
        why = "vCenter leaves it to others to fetch it from there, and bfinfra uploads what the OVA holds"
        raise wrong(
            path, file, f"{shown(href)} is outside of the archive", why, "have it packed with its files"
        )
    written = {each.removeprefix("./") for each in (href, unquote(href))}
    found = sorted(written & members.keys())
    if len(found) > 1:
        raise wrong(path, file, f"{shown(href)} may be {' or '.join(found)}")
    if not found:
        raise wrong(
            path,
            file,
            f"its descriptor refers to {shown(href)}, which it does not hold",
            next="download it again",
        )
    return found[0]


def _whole(path: PurePath, file: Element, name: str) -> None:
    """Raises Refusal for a file in pieces or packed: vSphere leaves joining and unpacking to others."""
    if raw(file, "chunkSize") is not None:
        raise wrong(path, file, f"{name} is split into chunks", "vSphere takes a disk in one piece")
    packed = attribute(file, "compression").lower()
    if packed not in ("", "identity"):
        why = "vSphere doesn't unpack disks: it would end the upload with an error"
        raise wrong(path, file, f"{name} is compressed ({shown(packed)})", why)


def disks(
    path: PurePath, root: Element, found: Mapping[str, File], properties: Sequence[Property]
) -> dict[str, Disk]:
    """Disk id → disk. Raises Refusal."""
    made: dict[str, Disk] = {}
    section = first(root, "DiskSection")
    for each in children(section, "Disk") if section is not None else ():
        disk = _disk(path, each, found, properties)
        if not disk.id or disk.id in made:
            raise wrong(
                path, each, f"the id {shown(disk.id)} is there twice" if disk.id else "it has no diskId"
            )
        if disk.href and any(disk.href == other.href for other in made.values()):
            raise wrong(path, each, f"{disk.href} fills two disks", "vSphere takes one file for each")
        made[disk.id] = disk
    return made


def _disk(path: PurePath, disk: Element, found: Mapping[str, File], properties: Sequence[Property]) -> Disk:
    name, file = attribute(disk, "diskId"), attribute(disk, "fileRef")
    if file and file not in found:
        raise wrong(
            path,
            disk,
            f"its disk {shown(name)} refers to the file {shown(file)}, which its descriptor does not list",
        )
    if parent := attribute(disk, "parentRef"):
        why = "bfinfra uploads whole disks only"
        raise wrong(path, disk, f"{shown(name)} is what differs from the disk {shown(parent)}", why)
    href, size = found[file] if file else ("", 0)
    form = attribute(disk, "format")
    if href and form and "vmdk" not in form.lower():
        raise wrong(path, disk, f"{shown(name)} is {shown(form)}", "vSphere takes VMDK disks")
    unit = bytes_in(path, disk, attribute(disk, "capacityAllocationUnits"), "its capacity")
    capacity = unit * _capacity(path, disk, properties)
    populated = number(path, disk, attribute(disk, "populatedSize", "0"), "its populated size")
    if capacity and populated > capacity:
        raise wrong(path, disk, f"{populated} of {capacity} bytes are populated", "which can't be")
    return Disk(name, href, size, capacity, form, populated)


def _capacity(path: PurePath, disk: Element, properties: Sequence[Property]) -> int:
    """The number, or that of the property that `${…}` names; 0 if it has no value yet."""
    written, name = attribute(disk, "capacity"), shown(attribute(disk, "diskId"))
    reference = re.fullmatch(r"\s*\$\{([^{}]+)\}\s*", written)
    if reference is None:
        found = number(path, disk, written, f"the capacity of {name}")
        if not found:
            raise wrong(path, disk, f"the capacity of {name} is 0")
        return found
    for each in properties:
        if each.key == reference[1]:
            return number(path, disk, each.default or "0", f"the capacity of {name}")
    raise wrong(
        path,
        disk,
        f"the capacity of its disk {name} is the property {shown(reference[1])}, which it does not have",
    )
