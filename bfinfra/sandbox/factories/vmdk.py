"""Stream-optimised VMDKs (VMware's Virtual Disk Format 5.0): a large disk of which little is written."""

from __future__ import annotations

import random
import struct
import zlib

SECTOR = 512
GRAIN = 128  # sectors
TABLE = 512  # grains a table leads to
OVERHEAD = 128  # sectors before the first grain
AT_END = 0xFFFF_FFFF_FFFF_FFFF
TABLE_MARK, DIRECTORY_MARK, FOOTER_MARK = 1, 2, 3


def make_vmdk(capacity: int, content: int, seed: str) -> bytes:
    """A disk of `capacity` bytes with about `content` bytes of data in it, which doesn't compress; the same
    seed gives the same bytes.
    """
    sectors = capacity // SECTOR
    grains = min(max(1, content // (GRAIN * SECTOR)), sectors // GRAIN, TABLE)
    chance = random.Random(seed)  # noqa: S311 - reproducible filling, no secret
    out = bytearray(
        _padded(_header(sectors, AT_END) + _descriptor(sectors, chance.getrandbits(32)), OVERHEAD)
    )
    places = [0] * TABLE
    for number in range(grains):
        places[number] = len(out) // SECTOR
        packed = zlib.compress(chance.randbytes(GRAIN * SECTOR), 1)
        out += _padded(struct.pack("<QI", number * GRAIN, len(packed)) + packed)
    table = _marked(out, struct.pack(f"<{TABLE}I", *places), TABLE_MARK)
    directory = [table] + [0] * (-(-sectors // (GRAIN * TABLE)) - 1)
    at = _marked(out, struct.pack(f"<{len(directory)}I", *directory), DIRECTORY_MARK)
    _marked(out, _header(sectors, at), FOOTER_MARK)
    return bytes(out) + bytes(SECTOR)


def _header(sectors: int, directory: int) -> bytes:
    packed = struct.pack(
        "<4sIIQQQQIQQQB4sH",
        b"KDMV",
        3,
        0x30001,
        sectors,
        GRAIN,
        1,
        20,
        TABLE,
        0,
        directory,
        OVERHEAD,
        0,
        b"\n \r\n",
        1,
    )
    return _padded(packed)


def _descriptor(sectors: int, identity: int) -> bytes:
    return (
        f"# Disk DescriptorFile\nversion=1\nCID={identity:08x}"
        '\nparentCID=ffffffff\ncreateType="streamOptimized"\n\n'
        f'# Extent description\nRW {sectors} SPARSE "call-me-stream.vmdk"\n\n'
        '# The Disk Data Base\n#DDB\n\nddb.adapterType = "lsilogic"\nddb.geometry.heads = '
        '"255"\nddb.geometry.sectors = "63"\n'
        f'ddb.geometry.cylinders = "{sectors // (255 * 63)}"\nddb.virtualHWVersion = "17"\n'
    ).encode()


def _marked(out: bytearray, data: bytes, mark: int) -> int:
    """Append a marker and its data; returns the sector where the data starts."""
    data = _padded(data)
    out += _padded(struct.pack("<QII", len(data) // SECTOR, 0, mark))
    at = len(out) // SECTOR
    out += data
    return at


def _padded(data: bytes, sectors: int = 1) -> bytes:
    return data + bytes(-len(data) % (sectors * SECTOR))
