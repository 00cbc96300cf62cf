"""What a disk's file is, by its header: vSphere takes stream-optimised VMDKs only, whatever the descriptor
says, and ends the upload of any other with an error. Source: Virtual Disk Format 5.0; govc refuses the same.
"""

from __future__ import annotations

import struct

HEADER = 79  # bytes: up to the kind of compression
MAGIC = b"KDMV"
COMPRESSED = 1 << 16  # a flag: its grains are compressed, one after the other
OTHERS = {
    b"\x1f\x8b": "a gzip file",
    b"BZh": "a bzip2 file",
    b"QFI\xfb": "a QCOW2 image",
    b"conectix": "a VHD image",
    b"vhdxfile": "a VHDX image",
    b"# Disk D": "the description of a VMDK without its data",
    b"COWD": "an old VMDK of ESX",
}


def odd(head: bytes) -> str:
    """What a file with these first bytes is, if it is no stream-optimised VMDK; "" if it is one."""
    if not head.startswith(MAGIC):
        return next((what for magic, what in OTHERS.items() if head.startswith(magic)), "no VMDK")
    if len(head) < HEADER:
        return "a VMDK that is cut short"
    (flags,) = struct.unpack_from("<I", head, 8)
    return "" if flags & COMPRESSED else "a VMDK that is not stream-optimised"
