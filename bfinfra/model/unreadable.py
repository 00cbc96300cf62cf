"""Groups what could not be read by cause: a server that doesn't answer is one cause, whatever it hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Unread(NamedTuple):
    """The resources that one cause hides: their addresses, and the kinds of which nothing is known."""

    why: str
    addresses: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The names for a sentence: the resources, or else the kinds."""
        return self.addresses or self.kinds

    @property
    def besides(self) -> str:
        """A sentence about hidden resources without a name, or ""."""
        return (
            "Neither can resources that the file no longer contains." if self.addresses and self.kinds else ""
        )


def by_cause(unreadable: Mapping[str, str]) -> list[Unread]:
    """The causes, in the order in which they occurred. `unreadable`: address or kind → why."""
    found: dict[str, list[str]] = {}
    for where, why in unreadable.items():
        found.setdefault(why, []).append(where)
    return [
        Unread(
            why,
            tuple(where for where in wheres if "/" in where),
            tuple(where for where in wheres if "/" not in where),
        )
        for why, wheres in found.items()
    ]
