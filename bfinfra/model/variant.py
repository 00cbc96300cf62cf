"""What makes one site of several out of the same files: overlays, and what the site's values are."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any

from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """A value that was given without a file. `data`: text, or plain data; `origin`: where an error says that
    it comes from, such as `--set workers`.
    """

    name: str
    data: Any = field(repr=False)
    origin: str


@dataclass(frozen=True, slots=True)
class Variant:
    """`overlays`: files or folders, each laid on what was read before it; `value_files`: files of values; of
    two that give the same value the later one counts, and `given` counts before both.
    """

    overlays: tuple[Path, ...] = ()
    value_files: tuple[Path, ...] = ()
    given: tuple[Given, ...] = ()


PLAIN = Variant()
"""The site as its files say it."""
