"""What a site would say of an object that stands there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from bfinfra.model.records import dataclass

Path = tuple[str | int, ...]
"""Where a field is: the names and positions that lead to it, as names may hold dots."""


@dataclass(frozen=True)
class Description:
    """One object in the words of a site.

    `name`: what the resource is called; `fields`: what stands under it; `state`: what drift would compare
    with; `fill_in`: fields whose values nobody tells, and what belongs there; `left_out`: why it can't be
    described, "" where it can.
    """

    name: str
    fields: Mapping[str, object] = field(default_factory=dict)
    state: object = None
    fill_in: Mapping[Path, str] = field(default_factory=dict)
    left_out: str = ""


def free_name(text: str, taken: Mapping[str, object]) -> str:
    """A name out of any text: small letters, digits and dashes, with a number where it is taken."""
    base = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].rstrip("-") or "unnamed"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def variable(*words: str) -> str:
    """The name of an environment variable out of words: `bf-01`, `password` → BF_01_PASSWORD."""
    name = "_".join(re.sub(r"[^A-Z0-9]+", "_", each.upper()).strip("_") for each in words)
    return name if name[:1].isalpha() else f"_{name}"
