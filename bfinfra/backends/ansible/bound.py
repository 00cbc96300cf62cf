"""A program of its own: Ansible, in a session of its own so that a terminal's signals don't reach it, killed when the process that started it is gone.

Modules are put together once for all plays of a run: that is a third of what a play costs.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import runpy
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Arguments: the parent's process id, the folder of modules put together, then what `python -m ansible` takes."""
    parent, modules, sys.argv = int(sys.argv[1]), sys.argv[2], ["ansible", *sys.argv[3:]]
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it went before it could be tied to
        sys.exit(1)
    kept = Path(importlib.import_module("ansible.constants").DEFAULT_LOCAL_TMP, "ansiballz_cache")  # where it looks for them; goes with the process, what it leads to stays
    kept.symlink_to(modules)
    runpy.run_module("ansible", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
