"""What could not be read, by its cause: one server that doesn't answer is one cause, whatever it hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Unread(NamedTuple):
    """What one cause hides: the addresses of resources, and the kinds of which nothing is known."""

    why: str
    addresses: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """What a sentence names: the resources; where the site has none of them, the kinds."""
        return self.addresses or self.kinds

    @property
    def besides(self) -> str:
        """What it hides that nobody can name, as a sentence; "" where that is nothing."""
        return "Nor can what the file no longer names." if self.addresses and self.kinds else ""


def by_cause(unreadable: Mapping[str, str]) -> list[Unread]:
    """The causes, in the order in which they were met. `unreadable`: address or kind → why."""
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
