"""The mark that every object of ours carries, in the object itself: which site and address made it, and what
was applied.

Written in one line so that it fits an extraConfig value, an annotation, a custom attribute or the last line
of a description: `bfinfra:1 site=singapore-poc address=supervisor_namespace/cnasg applied=<base64 of deflated
JSON> id=<what no copy has>`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass

LINE = re.compile(
    r"bfinfra:1 site=(?P<site>[^\s]+) address=(?P<address>[^\s]+)(?: "
    r"applied=(?P<applied>[A-Za-z0-9+/=_-]*))?(?: id=(?P<id>[^\s]+))?"
)
LARGEST = 1 << 20  # bytes of JSON; a mark is a few kilobytes, more is an attack


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose the object is. `applied` is None while the work is unfinished, then the non-secret fields as
    applied.

    `id`: what the marked object has and no copy of it, mark and all, has: a VM's instance UUID, an object's
    place. "" where none was noted.
    """

    site: str
    address: str
    applied: Mapping[str, Any] | None = field(default=None)
    id: str = ""

    @property
    def owner(self) -> tuple[str, str]:
        """The site and the address in it: two marks with the same owner are of the same resource."""
        return self.site, self.address

    @property
    def name(self) -> str:
        """The name of the resource, without its kind."""
        return self.address.partition("/")[2]

    def name_of(self, site: str, kind: str) -> str | None:
        """The name of the resource if it is one of this site and of this kind, else None."""
        return self.name if self.site == site and self.address.startswith(f"{kind}/") else None

    def refuse_others(self, found: Mark | None, what: str, field: str = "") -> None:
        """Refusal where the mark that was found is another resource's, of this site or of another one.
        `what`: what is said of it.
        """
        if found is not None and found.owner != self.owner:
            raise Refusal(
                what,
                field=field,
                why=f"it belongs to {found.address} of {found.site}",
                next="take it out of one of the two",
            )

    def committed(self, applied: Mapping[str, Any]) -> Mark:
        """The same mark, on a finished object."""
        return replace(self, applied=applied)

    def on(self, identity: str) -> Mark:
        """The same mark, for the one object that has this id."""
        return replace(self, id=identity)

    def where(self, identity: str) -> Mark | None:
        """The mark as read from the object that has this id, without the id; None where it was copied from
        another one.
        """
        return replace(self, id="") if self.id in ("", identity) else None

    @property
    def pending(self) -> Mark:
        """The same mark, on unfinished work."""
        return replace(self, applied=None)

    def encode(self) -> str:
        """One line of text."""
        line = f"bfinfra:1 site={self.site} address={self.address}"
        if self.applied is not None:
            packed = zlib.compress(
                json.dumps(self.applied, sort_keys=True, separators=(",", ":")).encode(), 9
            )
            line += f" applied={base64.b64encode(packed).decode()}"
        return f"{line} id={self.id}" if self.id else line

    @staticmethod
    def site_in(text: str | None, identity: str = "") -> str | None:
        """Whose mark is in `text`, of the object that has this id: the site alone, without unpacking what was
        applied.
        """
        match = LINE.search(text or "")
        return match["site"] if match and (not identity or match["id"] in (None, identity)) else None

    @staticmethod
    def address_in(text: str | None) -> str | None:
        """Of what the mark in `text` is, without unpacking what was applied; None where there is no mark."""
        match = LINE.search(text or "")
        return match["address"] if match else None

    @classmethod
    def own(cls, text: str | None, address: str) -> Mark | None:
        """The mark in the description of the object that this address makes, of whichever site; None where
        the text was copied from another object.
        """
        mark = cls.decode(text)
        return mark if mark is not None and mark.address == address else None

    @classmethod
    def decode(cls, text: str | None) -> Mark | None:
        """The mark in `text`, or None; a spoiled `applied` counts as unfinished work."""
        match = LINE.search(text) if isinstance(text, str) else None
        return (
            cls(match["site"], match["address"], _unpack(match["applied"]), match["id"] or "")
            if match
            else None
        )


def common(marks: Sequence[Mark | None]) -> Mark | None:
    """The mark that all of several objects bear; unfinished where they differ; None where one bears none: a
    stranger is never overwritten.
    """
    first = marks[0] if marks else None
    if first is None or None in marks:
        return None
    foreign = next((mark for mark in marks if mark and mark.owner != first.owner), None)
    return foreign or (first if all(mark == first for mark in marks) else first.pending)


def below(text: str, mark: Mark) -> str:
    """A description with the mark as its last line, the user's text above it."""
    return f"{above(text)}\n{mark.encode()}".lstrip("\n")


def above(text: str | None) -> str:
    """A description without the mark."""
    return "\n".join(line for line in (text or "").splitlines() if not LINE.match(line))


def _unpack(packed: str | None) -> Mapping[str, Any] | None:
    if packed is None:
        return None
    try:
        stream = zlib.decompressobj()
        data = json.loads(stream.decompress(base64.b64decode(packed, validate=True), LARGEST))
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
