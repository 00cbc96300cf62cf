"""The output of a command on a machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Output:
    """A command's output, both streams together, and its exit code."""

    text: str
    code: int = 0
