"""A variant of a site: overlays and values that make one site of several from the same files."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any

from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """A value that was given without a file. `data`: text, or plain data; `origin`: what an error shows as
    its place, such as `--set workers`.
    """

    name: str
    data: Any = field(repr=False)
    origin: str


@dataclass(frozen=True, slots=True)
class Variant:
    """`overlays`: files or folders, each applied to what was read before it; `value_files`: files of values.
    A later file overrides an earlier one, and `given` overrides both.
    """

    overlays: tuple[Path, ...] = ()
    value_files: tuple[Path, ...] = ()
    given: tuple[Given, ...] = ()


PLAIN = Variant()
"""The site as its files describe it."""
