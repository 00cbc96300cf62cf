"""A program of its own: Ansible, in a session of its own so that a terminal's signals don't reach it, killed when the process that started it is gone."""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Arguments: the parent's process id, then what `python -m ansible` takes."""
    parent, sys.argv = int(sys.argv[1]), ["ansible", *sys.argv[2:]]
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it went before it could be tied to
        sys.exit(1)
    runpy.run_module("ansible", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
