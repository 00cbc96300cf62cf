"""Reads files of a ZIP archive that is held in memory.

The standard library's zipfile reads the list of all members before anybody can count them, so its size is
bounded by the archive's; bzip2 and xz inside would be unpacked without a bound, so they are refused.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence

from bfinfra.backends.archives.bounds import FILE, FOLDER, LINK, BadArchive, Budget, NoArchive, shown, size
from bfinfra.backends.archives.packed import PIECE

LARGEST = 4 << 20  # bytes of the archive: its list takes ten times as much at most
HEAD = 30  # bytes of a member's own header, without its name
ENCRYPTED = 0x1 | 0x40 | 0x2000
DIGESTIBLE = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    RuntimeError,
)
"""What zipfile raises on what it can't place."""


def files(data: bytes, budget: Budget, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each wanted file. Raises BadArchive, NoArchive."""
    if len(data) > LARGEST:
        raise BadArchive(f"it has {len(data):,} bytes", f"more than {size(LARGEST)} are not read")
    budget.took(len(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            names = [_admitted(each, budget) for each in listed]
            _check_overlaps(listed, archive.start_dir)
            for name, info in zip(names, listed, strict=True):
                if wanted(name) and not _is_folder(info):
                    yield name, _content(archive, info, budget)
    except BadArchive:
        raise
    except BROKEN as error:
        raise NoArchive("it is no ZIP archive, or damaged", shown(str(error))) from None


def _admitted(info: zipfile.ZipInfo, budget: Budget) -> str:
    mode = info.external_attr >> 16
    kind = FOLDER if _is_folder(info) else FILE
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        kind = LINK if stat.S_ISLNK(mode) else "something that is not a file"
    name = budget.admit(info.orig_filename, kind, info.file_size)
    if info.flag_bits & ENCRYPTED:
        raise BadArchive(f"{shown(name)} is encrypted", next="get one without a password")
    if info.compress_type not in DIGESTIBLE:
        raise BadArchive(f"{shown(name)} is packed in another way than ZIP archives usually are")
    return name


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")  # its own method fails on a member without a name


def _check_overlaps(listed: Sequence[zipfile.ZipInfo], end: int) -> None:
    """Members that share their bytes would be unpacked again and again."""
    begins = sorted((each.header_offset, each.compress_size + HEAD, each.filename) for each in listed)
    for (begin, length, name), after in zip(begins, [*(at for at, *_ in begins[1:]), end], strict=False):
        if begin + length > after:
            raise BadArchive(f"{shown(name)} overlaps what follows it", "so it is damaged, or made to swell")


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> bytes:
    """The whole content, which must be as long as declared."""
    pieces: list[bytes] = []
    with archive.open(info) as stream:
        while piece := stream.read(PIECE):
            budget.gave(len(piece))
            pieces.append(piece)
    return b"".join(pieces)
