"""The only way out to standard output and standard error: text for people, and documents for programs."""

from __future__ import annotations

import sys
from typing import TextIO


def text(words: str, file: TextIO | None = None, *, end: str = "\n", flush: bool = False) -> None:
    """Print text for people, whatever is in it: on a terminal and in a log it is only text. `file`: standard
    output by default.
    """
    from bfinfra.render.safe import printed

    print(printed(words), end=end, file=file or sys.stdout, flush=flush)


def error(*lines: str) -> None:
    """Print a message for people to standard error. Each is one line, whatever is in it."""
    from bfinfra.render.safe import safe

    text("\n".join(safe(line, len(line)) for line in lines), sys.stderr)


def exact(content: str, file: TextIO | None = None, *, end: str = "\n", flush: bool = False) -> None:
    """Print what another program reads, exactly: JSON, a manifest, a unit, commands for a shell."""
    print(content, end=end, file=file or sys.stdout, flush=flush)
