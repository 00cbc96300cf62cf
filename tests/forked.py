"""What the process that tests/forks.py forks from has imported: all that a sandbox and an apply import, once."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from pathlib import Path

import bfinfra

PARTS = ("app", "backends", "engine", "kinds", "model", "sandbox", "spec")
LATE = ("cryptography.x509", "encodings.idna", "forks", "kinds.lifecycle")
"""What an apply imports when it needs it, and the functions that the forks run."""

for part in PARTS:
    for found in pkgutil.walk_packages([str(Path(bfinfra.__file__).parent / part)], f"bfinfra.{part}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
for name in LATE:
    importlib.import_module(name)
gc.freeze()  # a fork that looked for garbage here would copy all of it
