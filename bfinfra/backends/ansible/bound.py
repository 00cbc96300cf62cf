"""Runs Ansible as a program of its own, in its own session, so that a terminal's signals don't reach it. It
ends, with all its workers, when the process that started it does.

Modules are packed once for all plays of a run: that takes a third of a play's time. Garbage collection is
off: it takes a tenth, as each worker touches all memory.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import runpy
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """End with the process `parent`, and let forked workers end with this process: one without a reader would
    wait for ever.
    """
    prctl, forking = ctypes.CDLL(None).prctl, [parent]

    def now() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != forking[0]:  # the parent ended before this process was bound to it
            os._exit(1)

    now()
    os.register_at_fork(before=lambda: forking.insert(0, os.getpid()), after_in_child=now)


def main() -> None:
    """Run Ansible. Arguments: the parent's process id, the folder of packed modules, then those of `python -m
    ansible`.
    """
    parent, modules, sys.argv = int(sys.argv[1]), sys.argv[2], ["ansible", *sys.argv[3:]]
    os.setsid()
    gc.disable()
    os.register_at_fork(before=gc.freeze)
    tie(parent)
    kept = Path(
        importlib.import_module("ansible.constants").DEFAULT_LOCAL_TMP, "ansiballz_cache"
    )  # where Ansible looks for them; the link goes with the process, its target stays
    kept.symlink_to(modules)
    runpy.run_module("ansible", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
