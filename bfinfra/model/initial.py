"""A new site before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key


@dataclass(frozen=True)
class Initial:
    """The text of a new site. `resources`: what it describes; `left_out`: what it does not describe, and why;
    `differing`: address → what an adoption would change or refuse.
    """

    text: str
    resources: tuple[Key, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    differing: Mapping[str, str] = field(default_factory=dict)
