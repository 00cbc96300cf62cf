"""Small OVAs of a Bitfusion server: correct ones, and ones that are broken in a named way."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from bfinfra.sandbox.factories.descriptor import Appliance, Disk, descriptor
from bfinfra.sandbox.factories.vmdk import make_vmdk

GIB = 2**30
BROKEN = (
    "truncated",
    "wrong digest",
    "traversal",
    "link",
    "no descriptor",
    "entity bomb",
    "late descriptor",
    "duplicate",
)
BOMB = (
    '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "]>"
)


def make_ova(
    path: Path,
    *,
    product: str = "VMware vSphere Bitfusion Server",
    version: str = "3.0.0-11",
    disk: int = 1 << 20,
    broken: str = "",
) -> None:
    """Write an OVA; the same arguments and file name give the same bytes. `disk`: bytes of data in each of
    its two disks.

    `broken`: one of BROKEN. Raises ValueError for any other word.
    """
    if broken and broken not in BROKEN:
        raise ValueError(f"broken: {broken!r} is none of {', '.join(BROKEN)}")
    name = path.stem
    disks = {
        f"{name}-disk{n}.vmdk": make_vmdk(size * GIB, disk, f"{name} {version} {n}")
        for n, size in ((1, 50), (2, 30))
    }
    described = Appliance(
        name,
        product,
        version,
        tuple(Disk(h, len(d), size * GIB) for (h, d), size in zip(disks.items(), (50, 30), strict=True)),
    )
    text = descriptor(described)
    if broken == "entity bomb":
        text = text.replace("?>\n", f"?>\n{BOMB}\n", 1).replace(
            "<Info>A virtual machine</Info>", "<Info>&j;</Info>"
        )
    members = {f"{name}.ovf": text.encode(), **disks}
    manifest = "".join(
        f"SHA256({file})= {_digest(data, broken)}\n" for file, data in members.items()
    ).encode()
    ordered = [(f"{name}.ovf", members.pop(f"{name}.ovf")), (f"{name}.mf", manifest), *members.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_tar(ordered, broken))


def _digest(data: bytes, broken: str) -> str:
    found = hashlib.sha256(data).hexdigest()
    return found[::-1] if broken == "wrong digest" and data.startswith(b"KDMV") else found


def _tar(members: list[tuple[str, bytes]], broken: str) -> bytes:
    if broken == "no descriptor":
        members = members[1:]
    if broken == "late descriptor":
        members = [*members[1:], members[0]]
    if broken == "duplicate":
        members = [*members, members[-1]]
    if broken == "traversal":
        members = [*members, ("../outside.vmdk", b"x")]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            tar.addfile(member(name, len(data)), io.BytesIO(data))
        if broken == "link":
            tar.addfile(link("link.vmdk", "/etc/passwd"))
    whole = out.getvalue()
    return whole[: len(whole) * 2 // 3] if broken == "truncated" else whole


def member(name: str, size: int) -> tarfile.TarInfo:
    """A plain file in a tar, with nothing in it that changes from run to run."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime, info.uname, info.gname = size, 0o644, 1_625_209_648, "root", "root"
    return info


def link(name: str, target: str) -> tarfile.TarInfo:
    """A symbolic link in a tar."""
    info = member(name, 0)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info
