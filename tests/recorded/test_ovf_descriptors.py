"""govmomi's fixtures of OVF descriptors (vCenter's own appliance, NSX, Photon, virt-v2v …) through bfinfra's
reader; govc and vcsim judge.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from lxml import etree
from peers.found import run
from recorded.conftest import Held
from recorded.sources import fetched

from bfinfra.backends.archives.tar import Member
from bfinfra.backends.ova import xml
from bfinfra.backends.ova.descriptor import Descriptor, describe
from bfinfra.model.errors import Refusal

SOURCE = "govmomi 0.56.0, OVF descriptors"
REFUSED = re.compile(
    r"does not hold exactly one virtual machine|is no XML|declares a document type|is no OVF "
    r"envelope|is encoded as|asks for no hardware|"
    r"line \d+ of its descriptor, \w+: .+; .+|has \d+ tags|refers to the file|names the property|which it does not have|is "
    r"expected|counts (disks|memory) in"
)


@dataclass(frozen=True)
class Read:
    """`found`: a Descriptor, or the words of the refusal."""

    path: Path
    found: Descriptor | str


@functools.cache
def descriptors() -> tuple[Read, ...]:
    """Each that differs from the others in content, read once."""
    folder = fetched("module/govmomi-v0.56.0") / "ovf/fixtures"
    different = {path.read_bytes(): path for path in sorted(folder.rglob("*.[oO][vV][fF]"), reverse=True)}
    return tuple(Read(path, read(path, data)) for data, path in different.items())


def read(path: Path, data: bytes) -> Descriptor | str:
    try:
        root, _ = xml.parse(PurePath(path.name), data)
        return describe(PurePath(path.name), root, dict(members(root)))
    except Refusal as error:
        return str(error)


def members(root: Any) -> Iterator[tuple[str, Member]]:
    """The files that it lists, as large as it says: descriptors come alone."""
    for file in root.iter("{*}File"):
        attributes = {etree.QName(key).localname: value for key, value in file.attrib.items()}
        href = attributes.get("href", "")
        size = attributes.get("size", "").strip()
        yield href, Member(href, 0, int(size) if size.isdigit() else 0)


def test_every_descriptor_is_read_or_refused_with_a_sentence(held: Held) -> None:
    refused = {each.path.name: each.found for each in descriptors() if isinstance(each.found, str)}
    wrong = [f"{name}: {why}" for name, why in refused.items() if not REFUSED.search(why)]
    held(f"{SOURCE}: read, or refused for a reason ({len(refused)})", wrong, len(descriptors()))


@functools.cache
def judged() -> dict[Path, dict[str, Any]]:
    """What govc's import.spec and govmomi's reader of hardware make of those that bfinfra reads."""
    judge = fetched("bin") / "ovfspec"
    paths = [each.path for each in descriptors() if isinstance(each.found, Descriptor)]
    theirs = run([str(judge)], {}, "\n".join(map(str, paths)))
    return dict(zip(paths, map(json.loads, theirs.splitlines()), strict=True))


def both() -> Iterator[tuple[str, Descriptor, dict[str, Any]]]:
    """Name, what bfinfra read, what govmomi read, where both read it."""
    theirs = judged()
    for each in descriptors():
        if isinstance(each.found, Descriptor) and not theirs[each.path]["Error"]:
            yield each.path.name, each.found, theirs[each.path]


STRICTER = {
    "gzip_compression.ovf": "ovftool unpacks it before it sends it; vSphere, asked itself, doesn't",
    "comp002.ovf": "the same",
    "http_uri_in_file.ovf": "ovftool fetches it; nothing vouches for what comes",
    "valid_vmdk_neg_size.ovf": "a negative size says nothing that could be compared",
}
"""What VMware's ovftool takes and bfinfra doesn't, by name; and whole folders of it below."""
LAX = "LaxMode"
"""Machines of VirtualBox, which ovftool takes with --lax only."""
KINDER = {
    "invalid_createType_disk.ovf": "the disk is wrong, which is seen in an OVA, where it is at hand",
    "invalid_delta_reference_disk.ovf": "the same",
    "invalid_ref_size_neg.ovf": "the same: its size is not that of the file",
    "invalid_ref_size_null.ovf": "the same",
    "valid_no_disk_in_server.ovf": "the same: the file is not there",
    "valid_certificate.ovf": "its certificate is wrong, which is seen in an OVA",
    "nvm001.ovf": "an option of ovftool is wrong",
    "no_format.ovf": "the format is read from the disk itself",
    "not_in_order_disks.ovf": "the order of files is not asked for",
    "bare_minimal.ovf": "a file that nothing refers to is not sent",
    "content_vmwithnoid.ovf": "the machine's name comes from the site",
    "content_withnoinfo.ovf": "a text for people is missing",
    "section_withnoinfo.ovf": "the same",
    "invalid_no_version.ovf": "a product's version is not asked for",
    "no_version_num.ovf": "the same",
    "invalid_zero_capacity.ovf": "it has no disk at all",
    "child_uitem_req_true.ovf": "a field of a device that nobody knows is not looked for",
    "child_uitem_req_unspec.ovf": "the same",
    "twomax_rangemarker.ovf": "limits are no hardware",
    "twomin_rangemarker.ovf": "the same",
}
"""What ovftool refuses and bfinfra takes, and why that does no harm. The list only shrinks."""


def test_ovftool_s_own_examples_are_taken_and_refused_as_ovftool_does(held: Held) -> None:
    """VMware's folders say which are right and which are not. OVF 0.9 and several machines are left out."""
    wrong, count, unused = [], 0, set(STRICTER) | set(KINDER)
    for each in descriptors():
        side = {"Pos", "Neg"} & set(each.path.parts)
        why = each.found if isinstance(each.found, str) else ""
        if not side or "no OVF envelope" in why or "exactly one virtual" in why or "is no XML" in why:
            continue
        count += 1
        if ("Pos" in side) == (not why) or (LAX in each.path.parts and "virtualbox" in why):
            continue
        excused = each.path.name in (STRICTER if why else KINDER)
        unused.discard(each.path.name)
        wrong += [] if excused else [f"{each.path.name}: {why or 'taken'}"]
    held(f"{SOURCE}: ovftool's right and wrong ones", wrong, count)
    assert not unused, f"no longer needed: {sorted(unused)}"


def test_keys_networks_and_options_are_what_govc_says(held: Held) -> None:
    wrong, count = [], 0
    for name, ours, theirs in both():
        options, count = theirs["Options"], count + 1
        pairs = {
            "keys": (
                [p.key for p in ours.properties if p.user_configurable],
                [p["Key"] for p in options.get("PropertyMapping") or ()],
            ),
            "networks": (
                [n.name for n in ours.networks],
                [n["Name"] for n in options.get("NetworkMapping") or ()],
            ),
            "options": (
                sorted(o.id for o in ours.options),
                sorted(options.get("AllDeploymentOptions") or ()),
            ),
        }
        wrong += [
            f"{name}: {what}: {one} is not {other}" for what, (one, other) in pairs.items() if one != other
        ][:1]
    held(f"{SOURCE}: user keys, networks, options", wrong, count)


def test_hardware_is_what_govmomi_makes_of_it(held: Held) -> None:
    """Of the default deployment option.

    Not judged: machines that govmomi can't build (devices that it doesn't know), and items that are bounds:
    it takes the last one for the value, where DSP0243 takes none.
    """
    wrong, count = [], 0
    bounds = {each.path.name for each in descriptors() if b'ovf:bound="' in each.path.read_bytes()}
    for name, ours, theirs in both():
        if theirs["Hardware"] or name in bounds:
            continue
        count += 1
        found = (ours.hardware.cpus, ours.hardware.memory >> 20)
        wrong += (
            [f"{name}: {found} is not {(theirs['CPUs'], theirs['MemoryMB'])}"]
            if found != (theirs["CPUs"], theirs["MemoryMB"])
            else []
        )
    held(f"{SOURCE}: processors and memory", wrong, count)
