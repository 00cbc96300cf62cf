"""Contains a defect that one Site meets, so that the others go on."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger("bfinfra.operator")


def contained(what: Callable[[], None], name: str) -> str:
    """Run it. Returns what went wrong with it, which is logged, or ""."""
    try:
        what()
    except Exception as error:  # a defect with one Site must not stop the others
        log.exception("%s: this should not happen", name)
        return f"this should not happen: {type(error).__name__}"
    return ""
