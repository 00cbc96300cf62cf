"""OVAs of the sandbox's appliance, small, each with one oddity: what bfinfra makes of each, and where govc
makes something else of it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bfinfra.sandbox.factories.descriptor import Appliance, Disk, descriptor
from bfinfra.sandbox.factories.vmdk import make_vmdk

GIB = 1 << 30
NAME = "odd"
FIRST, SECOND = f"{NAME}-disk1.vmdk", f"{NAME}-disk2.vmdk"
NETWORKS = ("Network 1", "Network 2")
SIZES = {"vmdisk1": 50 * GIB, "vmdisk2": 30 * GIB}


def vmdk(number: int) -> bytes:
    """A disk with one grain."""
    return make_vmdk((50, 30)[number - 1] * GIB, 1, f"odd {number}")


@dataclass
class Parts:
    """An OVA before it is packed; an oddity changes it. `order`: names of its files, {} for all in theirs."""

    files: dict[str, bytes] = field(default_factory=lambda: {FIRST: vmdk(1), SECOND: vmdk(2)})
    text: str = ""
    encoding: str = "utf-8"
    algorithm: str = "SHA256"
    line: str = "{algorithm}({name})= {digest}\n"
    lines: Callable[[str], str] = str
    manifest: bool = True
    form: int = tarfile.USTAR_FORMAT
    prefix: str = ""
    order: tuple[str, ...] = ()
    wide: bool = False
    """Sizes in base 256, as GNU tar writes large ones."""

    def __post_init__(self) -> None:
        made = tuple(
            Disk(name, len(data), size)
            for (name, data), size in zip(self.files.items(), SIZES.values(), strict=True)
        )
        self.text = descriptor(Appliance(NAME, "Odd Server", "3.0.0-11", made, NETWORKS))

    def put(self, old: str, new: str) -> None:
        """Change the descriptor, once."""
        assert old in self.text, old
        self.text = self.text.replace(old, new, 1)

    def item(self, kind: str, old: str, new: str) -> None:
        """Change the first item of hardware that contains `kind`."""
        at = self.text.index(kind)
        begin, end = self.text.rindex("<Item", 0, at), self.text.index("</Item>", at)
        whole = self.text[begin:end]
        assert old in whole, old
        self.text = self.text[:begin] + whole.replace(old, new, 1) + self.text[end:]

    def rename(self, old: str, name: str, href: str) -> None:
        """Another name of a file, and what the descriptor calls it."""
        self.files = {name if each == old else each: data for each, data in self.files.items()}
        self.put(f'ovf:href="{old}"', f'ovf:href="{href}"')

    def packed(self) -> bytes:
        """The archive."""
        whole = {f"{NAME}.ovf": self.text.encode(self.encoding), **self.files}
        rows = "".join(
            self.line.format(
                algorithm=self.algorithm,
                name=name,
                digest=hashlib.new(self.algorithm.lower().replace("-", ""), data).hexdigest(),
            )
            for name, data in whole.items()
        )
        if self.manifest:
            whole = {
                f"{NAME}.ovf": whole.pop(f"{NAME}.ovf"),
                f"{NAME}.mf": self.lines(rows).encode(),
                **whole,
            }
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=self.form) as tar:
            for name in self.order or whole:
                info = tarfile.TarInfo(self.prefix + name)
                info.size = len(whole[name])
                if not self.wide:
                    tar.addfile(info, io.BytesIO(whole[name]))
                else:
                    _wide(tar, info, whole[name])
        return out.getvalue()


def _wide(tar: tarfile.TarFile, info: tarfile.TarInfo, data: bytes) -> None:
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + len(data).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    content = bytes(header) + data + bytes(-len(data) % 512)
    tar.fileobj.write(content)
    tar.offset += len(content)


@dataclass(frozen=True)
class Odd:
    """One oddity. `refused`: words of bfinfra's refusal, "" where it takes the OVA; `apart`: why govc says
    something else, "" where both say the same.

    `sizes`: the capacities that the machine's disks have, in their order.
    """

    name: str
    change: Callable[[Parts], object]
    refused: str = ""
    apart: str = ""
    sizes: tuple[int, ...] = tuple(SIZES.values())

    def write(self, folder: Path) -> Path:
        """Pack it there."""
        parts = Parts()
        self.change(parts)
        path = folder / f"{NAME}.ova"
        path.write_bytes(parts.packed())
        return path


def each(*changes: Callable[[Parts], object]) -> Callable[[Parts], None]:
    """Several changes as one."""

    def change(parts: Parts) -> None:
        for one in changes:
            one(parts)

    return change


def put(old: str, new: str) -> Callable[[Parts], None]:
    return lambda parts: parts.put(old, new)


def item(kind: str, old: str, new: str) -> Callable[[Parts], None]:
    return lambda parts: parts.item(kind, old, new)


def attributes(**values: object) -> Callable[[Parts], None]:
    """Attributes of the packing itself."""

    def change(parts: Parts) -> None:
        for name, value in values.items():
            setattr(parts, name, value)

    return change


def swapped(parts: Parts) -> None:
    """The second disk hangs before the first one."""
    for number, unit in ((1, 1), (2, 0)):
        parts.item(
            f"<rasd:HostResource>ovf:/disk/vmdisk{number}<",
            f"AddressOnParent>{number - 1}<",
            f"AddressOnParent>{unit}<",
        )


def units(written: str, count: int, apart: str = "", name: str = "") -> Odd:
    """The first disk's capacity in other units; 50 GiB, or nearly."""
    size = {"10^9": 10**9, "gigabyte": 10**9}.get(
        next((u for u in ("10^9", "gigabyte") if u in written), ""), 0
    )
    return Odd(
        f"capacity in {written or name}",
        put(
            'ovf:capacity="50" ovf:capacityAllocationUnits="byte * 2^30"',
            f'ovf:capacity="{count}"' + (f' ovf:capacityAllocationUnits="{written}"' if written else ""),
        ),
        apart=apart,
        sizes=(50 * size or 50 * GIB, 30 * GIB),
    )


UNSENT = "govc reads no digests unless it is asked to, and then those of the uploaded files only"
UNREAD = "govc hands the descriptor over, and vcsim doesn't look at it"
BASE = "govc and vcsim know `byte * n^m` only, and take every other unit for a byte"
GO = "govc names a file as the descriptor does, and finds none of another spelling"
THIRD = '    <Disk ovf:capacity="8" ovf:capacityAllocationUnits="byte * 2^30" ovf:diskId="vmdisk3"'
ITEM = (
    "<Item{more}><rasd:AddressOnParent>{unit}</rasd:AddressOnParent><rasd:ElementName>{name}</rasd:ElementName>"
    "{rest}<rasd:InstanceID>{id}</rasd:InstanceID><rasd:ResourceType>{kind}</rasd:ResourceType></Item>\n"
)


def device(
    name: str, number: int, kind: int, rest: str = "", more: str = "", unit: int = 9
) -> Callable[[Parts], None]:
    """One more piece of hardware."""
    made = ITEM.format(name=name, id=number, kind=kind, rest=rest, more=more, unit=unit)
    return put("      <vmw:Config", f"      {made}      <vmw:Config")


def on_scsi(disk: str) -> str:
    return f"<rasd:HostResource>ovf:/disk/{disk}</rasd:HostResource><rasd:Parent>3</rasd:Parent>"


def property_of(words: str) -> Callable[[Parts], None]:
    """One more property, at the end of the first section."""
    return put("</ProductSection>", f"<Property {words}/></ProductSection>")


def third(parts: Parts) -> None:
    """A third disk, without a file."""
    parts.put("  </DiskSection>", f"{THIRD}/>\n  </DiskSection>")
    device("Hard disk 3", 30, 17, on_scsi("vmdisk3"), unit=2)(parts)


def packed_disk(parts: Parts) -> None:
    data = gzip.compress(parts.files[FIRST], mtime=0)
    parts.put(f'ovf:size="{len(parts.files[FIRST])}"', f'ovf:size="{len(data)}"')
    parts.files[FIRST] = data


def raw_disk(parts: Parts) -> None:
    """A sparse VMDK whose grains aren't compressed: its header says so."""
    data = bytearray(parts.files[FIRST])
    data[8:12] = (3).to_bytes(4, "little")
    parts.files[FIRST] = bytes(data)


def options(parts: Parts) -> None:
    """Two deployment options, of which the second is the default and has its own memory."""
    section = (
        "  <DeploymentOptionSection><Info/>"
        '<Configuration ovf:id="small"><Label>Small</Label><Description/></Configuration>'
        '<Configuration ovf:id="large" ovf:default="1"><Label>Large</Label><Description/></Configuration>'
        "</DeploymentOptionSection>\n  <VirtualSystem "
    )
    parts.put("  <VirtualSystem ", section)
    memory = '<Item ovf:configuration="{o}"><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:ElementName>m</rasd:ElementName><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>{n}</rasd:VirtualQuantity></Item>'
    at = parts.text.index("32768MB of memory")
    begin, end = parts.text.rindex("<Item", 0, at), parts.text.index("</Item>", at) + len("</Item>")
    parts.text = (
        parts.text[:begin]
        + memory.format(o="small", n=16384)
        + memory.format(o="large", n=32768)
        + parts.text[end:]
    )


ODD = (
    Odd("nothing odd", lambda _: None),
    # files
    Odd("compression identity", put('ovf:id="file1"', 'ovf:id="file1" ovf:compression="identity"')),
    Odd(
        "compression gzip",
        put('ovf:id="file1"', 'ovf:id="file1" ovf:compression="gzip"'),
        f"File: {FIRST} is compressed (gzip)",
        UNREAD,
    ),
    Odd(
        "compression bzip2",
        put('ovf:id="file1"', 'ovf:id="file1" ovf:compression="bzip2"'),
        f"File: {FIRST} is compressed (bzip2)",
        UNREAD,
    ),
    Odd("packed and not said", packed_disk, f"{FIRST} is a gzip file", UNREAD),
    Odd(
        "not stream-optimised",
        raw_disk,
        f"{FIRST} is a VMDK that is not stream-optimised",
        "govc looks into single VMDKs, not into those of an OVA",
    ),
    Odd(
        "chunks",
        put('ovf:id="file1"', 'ovf:id="file1" ovf:chunkSize="100"'),
        f"File: {FIRST} is split into chunks",
        UNREAD,
    ),
    Odd("percent-encoded href", lambda p: p.rename(FIRST, "odd disk1.vmdk", "odd%20disk1.vmdk"), apart=GO),
    Odd("percent in a name", lambda p: p.rename(FIRST, "odd%201.vmdk", "odd%201.vmdk")),
    Odd(
        "href that means two files",
        each(
            lambda p: p.rename(FIRST, "odd%201.vmdk", "odd%201.vmdk"),
            lambda p: p.rename(SECOND, "odd 1.vmdk", "odd 1.vmdk"),
        ),
        "may be odd 1.vmdk or odd%201.vmdk",
        UNREAD,
    ),
    Odd("dot-slash href", lambda p: p.rename(FIRST, FIRST, f"./{FIRST}"), apart=GO),
    Odd(
        "remote href",
        put(f'ovf:href="{FIRST}"', 'ovf:href="https://files.example/odd-disk1.vmdk"'),
        "File: https://files.example/odd-disk1.vmdk is outside of the archive",
        "both refuse it; govc after it made the machine",
    ),
    Odd(
        "href in no archive",
        put(f'ovf:href="{FIRST}"', 'ovf:href="other.vmdk"'),
        "refers to other.vmdk, which it does not hold",
        "both refuse it; govc after it made the machine",
    ),
    Odd(
        "two files of an id",
        put('ovf:id="file2"', 'ovf:id="file1"'),
        "File: the id file1 is there twice",
        UNREAD,
    ),
    Odd(
        "another size",
        put('ovf:id="file1" ovf:size="', 'ovf:id="file1" ovf:size="1'),
        "and its descriptor says 1",
        UNREAD,
    ),
    Odd("no size", lambda p: p.put(f' ovf:size="{len(p.files[FIRST])}"', "")),
    # archive
    Odd("dot-slash members", attributes(prefix="./")),
    Odd(
        "members in a folder",
        attributes(prefix="sub/"),
        "names must be plain",
        "govc looks at the end of a name only",
    ),
    Odd("disks in another order", attributes(order=(f"{NAME}.ovf", f"{NAME}.mf", SECOND, FIRST))),
    Odd("manifest last", attributes(order=(f"{NAME}.ovf", FIRST, SECOND, f"{NAME}.mf"))),
    Odd(
        "manifest first",
        attributes(order=(f"{NAME}.mf", f"{NAME}.ovf", FIRST, SECOND)),
        "its OVF descriptor is not its first file",
        "DSP0243 wants it first, and govc looks for it",
    ),
    Odd("gnu tar", attributes(form=tarfile.GNU_FORMAT)),
    Odd("pax tar", attributes(form=tarfile.PAX_FORMAT)),
    Odd("base-256 sizes", attributes(form=tarfile.GNU_FORMAT, wide=True)),
    Odd(
        "UTF-16 descriptor",
        each(
            lambda p: p.put('encoding="UTF-8"', 'encoding="UTF-16"'),
            lambda p: setattr(p, "encoding", "utf-16"),
        ),
        apart="Go's XML reader knows UTF-8 only",
    ),
    # manifest
    Odd("no manifest", attributes(manifest=False), "it has no manifest, so it can't be verified", UNSENT),
    Odd("manifest lists itself", attributes(lines=lambda rows: rows + f"SHA256({NAME}.mf)= {'0' * 64}\n")),
    Odd(
        "manifest lacks a disk",
        attributes(lines=lambda rows: "".join(rows.splitlines(True)[:-1])),
        f"its manifest lacks {SECOND}",
        UNSENT,
    ),
    Odd(
        "manifest names what isn't there",
        attributes(lines=lambda rows: rows + f"SHA256(more.iso)= {'0' * 64}\n"),
        "its manifest names more.iso, which it does not hold",
        UNSENT,
    ),
    Odd(
        "manifest without sense",
        attributes(lines=lambda rows: rows + "MD5 = 1\n"),
        "can't be understood",
        UNSENT,
    ),
    Odd("SHA-1", attributes(algorithm="SHA1")),
    Odd("SHA-384", attributes(algorithm="SHA384")),
    Odd("SHA-512", attributes(algorithm="SHA512")),
    Odd("sha256 in small letters, with blanks", attributes(line="sha256 ({name}) = {digest}\r\n")),
    Odd(
        "wrong digest",
        attributes(lines=lambda rows: rows[:-2] + ("0" if rows[-2] != "0" else "1") + "\n"),
        "is damaged",
        UNSENT,
    ),
    Odd(
        "certificate of nobody",
        attributes(files={FIRST: vmdk(1), SECOND: vmdk(2), f"{NAME}.cert": b"x"}),
        "its certificate can't be understood",
        UNSENT,
    ),
    # units
    units("byte * 2^20", 51200),
    units("byte * 2 ^ 30", 50, "vcsim wants it without these blanks"),
    units("byte*1024*1024*1024", 50, BASE),
    units("2^30 * byte", 50, BASE),
    units("GigaBytes", 50, BASE),
    units("GB", 50, BASE),
    units("gibibyte", 50, BASE),
    units("gigabyte", 50, BASE),
    units("byte * 10^9", 50),
    units("", 50 * GIB, "vcsim takes bytes without a unit for KiB", "bytes"),
    Odd(
        "capacity in furlongs",
        put("byte * 2^30", "furlongs"),
        "Disk: its capacity is counted in 'furlongs'",
        BASE,
    ),
    Odd(
        "memory in GB",
        each(
            item("32768MB of memory", ">byte * 2^20<", ">GB<"), item("32768MB of memory", ">32768<", ">32<")
        ),
    ),
    # disks
    Odd(
        "populated size above capacity",
        put(' ovf:populatedSize="', ' ovf:populatedSize="99999999'),
        "bytes are populated",
        UNREAD,
    ),
    Odd(
        "delta disk",
        put('ovf:diskId="vmdisk2"', 'ovf:diskId="vmdisk2" ovf:parentRef="vmdisk1"'),
        "Disk: vmdisk2 is what differs from the disk vmdisk1",
        UNREAD,
    ),
    Odd(
        "empty third disk",
        third,
        apart="vcsim crashes on a disk without a file",
        sizes=(50 * GIB, 30 * GIB, 8 * GIB),
    ),
    Odd("disk that nothing has", put("  </DiskSection>", f"{THIRD}/>\n  </DiskSection>")),
    Odd(
        "second disk before the first",
        swapped,
        apart="vcsim numbers disks by their place in the file",
        sizes=(30 * GIB, 50 * GIB),
    ),
    Odd(
        "capacity of a property",
        each(
            put('ovf:capacity="50"', 'ovf:capacity="${disk.size}"'),
            property_of('ovf:key="disk.size" ovf:type="uint32" ovf:value="50"'),
        ),
        apart="vcsim reads numbers only",
    ),
    Odd(
        "capacity of no property",
        put('ovf:capacity="50"', 'ovf:capacity="${disk.size}"'),
        "is the property disk.size, which it does not have",
        "vcsim reads numbers only",
    ),
    Odd("no capacity", put('ovf:capacity="50"', ""), "as the capacity of vmdisk1", "vcsim takes it for 0"),
    Odd(
        "VHD",
        put(
            "http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized",
            "http://technet.microsoft.com/library/bb676673.aspx",
        ),
        "vSphere takes VMDK disks",
        UNREAD,
    ),
    Odd(
        "disk of an unknown id",
        put("ovf:/disk/vmdisk2", "ovf:/disk/vmdisk9"),
        "there is no such disk",
        "vcsim crashes on it",
    ),
    Odd(
        "one file for two disks",
        put('ovf:fileRef="file2"', 'ovf:fileRef="file1"'),
        f"{FIRST} fills two disks",
        UNREAD,
    ),
    # hardware
    Odd(
        "families vmx-13 vmx-11",
        put(">vmx-17<", ">vmx-13 vmx-11<"),
        apart="vcsim takes the list for one family",
    ),
    Odd("families vmx-10,vmx-11", put(">vmx-17<", ">vmx-10,vmx-11<")),
    Odd(
        "family virtualbox-2.2",
        put(">vmx-17<", ">virtualbox-2.2<"),
        "its hardware is of the family virtualbox-2.2",
        UNREAD,
    ),
    Odd("required sound card", device("sound", 40, 35), "sound is a device of the type 35", "both refuse it"),
    Odd(
        "sound card that may lack",
        device("sound", 40, 35, more=' ovf:required="false"'),
        apart="vcsim refuses it whatever is required",
    ),
    Odd(
        "adapter of virtio",
        put(">VmxNet3<", ">virtio<"),
        "is a device of the subtype virtio",
        "both refuse it",
    ),
    Odd("deployment options", options),
    Odd(
        "a device id twice",
        item("ElementName>Network adapter 2<", ">22<", ">21<"),
        "the InstanceID 21 is there twice",
        UNREAD,
    ),
    # networks, properties, sections
    Odd(
        "network that isn't listed",
        put(">Network 2</rasd:Connection>", ">Storage</rasd:Connection>"),
        "an adapter is connected to Storage",
        UNREAD,
    ),
    Odd(
        "choices with braces and commas",
        property_of(
            'ovf:key="mode" ovf:type="string" ovf:userConfigurable="1" ovf:value="a{1},b" ovf:qualifiers=\'ValueMap{&quot;a{1},b&quot;,&quot;MinLen(9)&quot;}\''
        ),
    ),
    Odd(
        "property of no type",
        property_of('ovf:key="mode" ovf:type="colour" ovf:userConfigurable="true"'),
        "mode is of the type colour",
        UNREAD,
    ),
    Odd(
        "property twice",
        property_of('ovf:key="hostname" ovf:type="string"'),
        "names the property hostname twice",
        UNREAD,
    ),
    Odd(
        "two licences",
        put(
            "    <EulaSection>",
            "    <EulaSection><Info/><License>More.</License></EulaSection>\n    <EulaSection>",
        ),
    ),
    Odd(
        "unknown section",
        put(
            "  </VirtualSystem>",
            '    <x:MachineSection xmlns:x="urn:x"><Info/></x:MachineSection>\n  </VirtualSystem>',
        ),
        "MachineSection of urn:x is required",
        UNREAD,
    ),
    Odd(
        "unknown section that may lack",
        put(
            "  </VirtualSystem>",
            '    <x:MachineSection xmlns:x="urn:x" ovf:required="false"><Info/></x:MachineSection>\n  </VirtualSystem>',
        ),
    ),
    Odd(
        "two machines",
        put("</Envelope>", '<VirtualSystem ovf:id="b"><Info/></VirtualSystem></Envelope>'),
        "exactly one virtual machine",
        "Go's reader keeps one of them",
    ),
    Odd(
        "collection",
        each(
            lambda p: p.put("<VirtualSystem ", '<VirtualSystemCollection ovf:id="c"><Info/><VirtualSystem '),
            lambda p: p.put("</VirtualSystem>", "</VirtualSystem></VirtualSystemCollection>"),
        ),
        "exactly one virtual machine",
        "vcsim crashes on a collection",
    ),
    Odd(
        "OVF 2",
        lambda p: setattr(p, "text", p.text.replace("envelope/1", "envelope/2")),
        "vSphere takes http://schemas.dmtf.org/ovf/envelope/1",
        UNREAD,
    ),
)
