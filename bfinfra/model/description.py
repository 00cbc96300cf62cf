"""An existing object, described as a resource of a site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from bfinfra.model.records import dataclass

Path = tuple[str | int, ...]
"""Names and positions that lead to a field. Not dotted, as names may contain dots."""


@dataclass(frozen=True)
class Description:
    """One object as a site would describe it.

    `name`: the resource's name; `fields`: its fields; `state`: what drift would compare with; `fill_in`:
    fields whose value can't be read, and what belongs there; `left_out`: why it can't be described, or "".
    """

    name: str
    fields: Mapping[str, object] = field(default_factory=dict)
    state: object = None
    fill_in: Mapping[Path, str] = field(default_factory=dict)
    left_out: str = ""


def free_name(text: str, taken: Mapping[str, object]) -> str:
    """A name made of any text: lower-case letters, digits and dashes, with a number if it is taken."""
    base = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].rstrip("-") or "unnamed"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def variable(*words: str) -> str:
    """The name of an environment variable made of words: `bf-01`, `password` → BF_01_PASSWORD."""
    name = "_".join(re.sub(r"[^A-Z0-9]+", "_", each.upper()).strip("_") for each in words)
    return name if name[:1].isalpha() else f"_{name}"
