"""The mark in every object that bfinfra makes: which site and address made it, and what was applied.

It is one line, so that it fits an extraConfig value, an annotation, a custom attribute or the last line of a
description: `bfinfra:1 site=singapore-poc address=supervisor_namespace/cnasg applied=<base64 of deflated
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
BLANK, PERCENT = "%20", "%25"
"""What stands for them in a mark, where a blank ends a name: `my lib` is written as `my%20lib`."""
LARGEST = 1 << 20  # bytes of JSON; a mark has a few kilobytes, so more is an attack
MOST = 100_000  # values in it: as many empty lists as fit would take sixty times their bytes


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a resource on its object. `applied`: the non-secret fields as they were applied, None while
    the work is unfinished.

    `id`: what the object has and no copy of it has: a VM's instance UUID, an object's path. "" if none was
    noted. `adopting`: the object has no mark yet, and gets one and nothing else; never written.
    """

    site: str
    address: str
    applied: Mapping[str, Any] | None = field(default=None)
    id: str = ""
    adopting: bool = False

    @property
    def owner(self) -> tuple[str, str]:
        """Site and address. Marks with the same owner belong to the same resource."""
        return self.site, self.address

    @property
    def name(self) -> str:
        """The name of the resource, without its kind."""
        return self.address.partition("/")[2]

    @property
    def kind(self) -> str:
        """The kind of the resource."""
        return self.address.partition("/")[0]

    def name_of(self, site: str, kind: str) -> str | None:
        """The resource's name if it is of this site and kind, else None."""
        return self.name if self.site == site and self.address.startswith(f"{kind}/") else None

    def refuse_others(self, found: Mark | None, what: str, field: str = "") -> None:
        """Raises Refusal if the found mark is of another resource, of any site. `what`: the refusal's
        text.
        """
        if found is not None and found.owner != self.owner:
            raise Refusal(
                what,
                field=field,
                why=f"it belongs to {found.address} of {found.site}",
                next="remove it from one of the two",
            )

    def committed(self, applied: Mapping[str, object]) -> Mark:
        """The same mark for a finished object."""
        return replace(self, applied=applied)

    def on(self, identity: str) -> Mark:
        """The same mark with the id of its object."""
        return replace(self, id=identity)

    def where(self, identity: str) -> Mark | None:
        """The mark, as read from the object with this id; None if it was copied from another object."""
        return replace(self, id="") if self.id in ("", identity) else None

    @property
    def pending(self) -> Mark:
        """The same mark for unfinished work."""
        return replace(self, applied=None)

    def encode(self) -> str:
        """One line of text."""
        line = f"bfinfra:1 site={_quoted(self.site)} address={_quoted(self.address)}"
        if self.applied is not None:
            packed = zlib.compress(
                json.dumps(self.applied, sort_keys=True, separators=(",", ":")).encode(), 9
            )
            line += f" applied={base64.b64encode(packed).decode()}"
        return f"{line} id={self.id}" if self.id else line

    @staticmethod
    def site_in(text: str | None, identity: str = "") -> str | None:
        """The site of the mark in `text`, read from the object with this id, without unpacking `applied`;
        None without a mark.
        """
        match = _line(text)
        return (
            _unquoted(match["site"]) if match and (not identity or match["id"] in (None, identity)) else None
        )

    @staticmethod
    def address_in(text: str | None) -> str | None:
        """The address of the mark in `text`, without unpacking `applied`; None without a mark."""
        match = _line(text)
        return _unquoted(match["address"]) if match else None

    @classmethod
    def owner_in(cls, text: str | None) -> Mark | None:
        """The mark in `text` without what was applied, which isn't unpacked; None without a mark."""
        match = _line(text)
        return cls(*_owner(match), id=match["id"] or "") if match else None

    @classmethod
    def own(cls, text: str | None, address: str) -> Mark | None:
        """The mark in an object's description if it has this address, of any site; None if the text was
        copied from another object.
        """
        mark = cls.decode(text)
        return mark if mark is not None and mark.address == address else None

    @classmethod
    def decode(cls, text: str | None) -> Mark | None:
        """The mark in `text`, or None. A corrupt `applied` counts as unfinished work."""
        match = _line(text)
        return cls(*_owner(match), _unpack(match["applied"]), match["id"] or "") if match else None


def _line(text: object) -> re.Match[str] | None:
    return LINE.search(text) if isinstance(text, str) else None


def common(marks: Sequence[Mark | None]) -> Mark | None:
    """The mark that several objects have in common: another owner's if one has it, pending if they differ,
    None if one has no mark.
    """
    first = marks[0] if marks else None
    if first is None or None in marks:
        return None
    foreign = next((mark for mark in marks if mark and mark.owner != first.owner), None)
    return foreign or (first if all(mark == first for mark in marks) else first.pending)


def below(text: str, mark: Mark) -> str:
    """A description: the user's text, with the mark as the last line."""
    return f"{above(text)}\n{mark.encode()}".lstrip("\n")


def above(text: str | None) -> str:
    """A description without the mark."""
    return "\n".join(line for line in (text or "").splitlines() if not LINE.match(line))


def _quoted(name: str) -> str:
    return name.replace("%", PERCENT).replace(" ", BLANK)


def _unquoted(text: str) -> str:
    return text.replace(BLANK, " ").replace(PERCENT, "%")


def _owner(match: re.Match[str]) -> tuple[str, str]:
    """Site and address."""
    return _unquoted(match["site"]), _unquoted(match["address"])


def _unpack(packed: str | None) -> Mapping[str, Any] | None:
    if packed is None:
        return None
    try:
        stream = zlib.decompressobj()
        text = stream.decompress(base64.b64decode(packed, validate=True), LARGEST)
        if text.count(b",") > MOST:  # only so many can be within each other: json gives up
            return None
        data = json.loads(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
