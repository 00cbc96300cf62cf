"""Reads the applies that were made from this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def history(site: str) -> Iterator[dict[str, Any]]:
    """The lines of the site's journals, one for each vCenter, oldest run first."""
    from bfinfra.engine import journal

    return journal.everywhere(site)
