"""The command line: one command, one file, with its arguments and its `run`, which makes one call of
bfinfra.app. Heavy modules are imported only when they are needed.
"""

from __future__ import annotations

from bfinfra.cli.main import main, program

__all__ = ["main", "program"]
