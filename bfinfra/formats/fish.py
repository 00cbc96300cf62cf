"""Words of fish."""

from __future__ import annotations

from bfinfra.formats.visible import visible


def quoted(text: object) -> str:
    """A word in single quotes, in one visible line."""
    return "'" + visible(text).replace("\\", "\\\\").replace("'", "\\'") + "'"
