"""What stands on this machine for a client image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bfinfra.model import kind


@dataclass(frozen=True, kw_only=True)
class State(kind.State):
    """A rendered context. `files`: name → SHA-256 as they stand; `built`, `pushed`: image and content, "" where not done."""

    context: str
    files: Mapping[str, str]
    built: str = ""
    pushed: str = ""
    tool: str = ""
    """What builds here, "" where nothing does."""
    why: str = ""
    """Why nothing does."""


@dataclass(frozen=True)
class Facts:
    """What builds here, or why nothing does. By resource: `read`: name → SHA-256 of the files that are copied in; `problems`."""

    tool: str = ""
    why: str = ""
    read: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
