"""The archive of an OVA: its members' names, places and sizes, from the tar headers only: a few hundred bytes
for each.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import BinaryIO

from bfinfra.backends.archives.bounds import BadArchive, Bounds, Budget, NoArchive, shown
from bfinfra.backends.archives.tar import Member, Tar
from bfinfra.backends.ova.source import refusal

ANY = 1 << 62
"""Bytes of a disk: it is not packed, and is read as a stream."""
BOUNDS = Bounds(whole=ANY, member=ANY, members=256, name=255, folders=0)


def members(path: PurePath, stream: BinaryIO, size: int) -> dict[str, Member]:
    """Name → member, in the order of the archive. Raises Refusal for a file that is no tar, is cut short, or
    contains what no OVA has.
    """
    try:
        found = {member.name: member for member in Tar(stream, Budget(BOUNDS), length=size)}
    except NoArchive:
        raise refusal(
            path,
            "it is not an OVA",
            "an OVA is a tar archive",
            "name the .ova file itself, unpacked from any .zip or .gz",
        ) from None
    except BadArchive as error:
        raise refusal(path, error.what, error.why, error.next) from None
    for name in found:
        if name.startswith(".") or ":" in name:
            raise refusal(
                path,
                f"it holds a file called {shown(name)!r}",
                "the files of an OVA have plain names",
                "do not use it",
            )
    if not found:
        raise refusal(path, "it is empty")
    return found
