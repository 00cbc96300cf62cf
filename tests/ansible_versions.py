"""The versions of ansible-core that roles and collection are tried on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOCKED = "locked"
VERSIONS = ("2.19.0", LOCKED, "2.20.10", "2.21.5")
"""The oldest that is supported, the locked one, and the newest of each later series."""
SCRIPT = Path(__file__).parents[1] / "script/ansible"


def program(version: str, name: str = "python") -> str:
    """The path of a program of this version, which is built where it is the first time."""
    if version == LOCKED:
        return str(Path(sys.executable).with_name(name))
    done = subprocess.run([str(SCRIPT), version], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(Path(done.stdout.strip()).with_name(name))
