"""A program of its own: Ansible, in a session of its own so that a terminal's signals don't reach it, killed
when the process that started it is gone, with all its workers.

Modules are put together once for all plays of a run: that is a third of what a play costs. Nothing looks for
garbage: that is a tenth, as each worker touches all memory.
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
    """End with the process `parent`, and let whatever is forked here end with its own: a worker that nobody
    hears any more waits forever.
    """
    prctl, forking = ctypes.CDLL(None).prctl, [parent]

    def now() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != forking[0]:  # it went before it could be tied to
            os._exit(1)

    now()
    os.register_at_fork(before=lambda: forking.insert(0, os.getpid()), after_in_child=now)


def main() -> None:
    """Arguments: the parent's process id, the folder of modules put together, then what `python -m ansible`
    takes.
    """
    parent, modules, sys.argv = int(sys.argv[1]), sys.argv[2], ["ansible", *sys.argv[3:]]
    os.setsid()
    gc.disable()
    os.register_at_fork(before=gc.freeze)
    tie(parent)
    kept = Path(
        importlib.import_module("ansible.constants").DEFAULT_LOCAL_TMP, "ansiballz_cache"
    )  # where it looks for them; goes with the process, what it leads to stays
    kept.symlink_to(modules)
    runpy.run_module("ansible", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
