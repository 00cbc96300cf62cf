"""What a command on a machine prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Output:
    """What a command prints, both streams together, and how it ends."""

    text: str
    code: int = 0
