"""The command line: arguments → one call of bfinfra.app. No logic; nothing heavy is imported before it is
needed.
"""

from __future__ import annotations

from bfinfra.cli.main import main, program

__all__ = ["main", "program"]
