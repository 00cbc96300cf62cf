"""The command line: one verb, one file, with its arguments and its `run`: one call of bfinfra.app. Nothing
heavy is imported before it is needed.
"""

from __future__ import annotations

from bfinfra.cli.main import main, program

__all__ = ["main", "program"]
