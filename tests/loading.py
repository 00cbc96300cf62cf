"""The modules that code loads, in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def loaded(code: str) -> set[str]:
    """Names of modules, as sys.modules has them."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
