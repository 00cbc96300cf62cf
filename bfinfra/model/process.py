"""Names a process on a machine, so that a server can keep the name and a later run can judge it."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")
MADE_UP = 1 << 40
"""The bit of a multicast address, which no card has."""


def me() -> str:
    """This machine and this process: `host/1a2b3c/4711`."""
    return f"{socket.gethostname()}/{_machine()}/{os.getpid()}"


def _machine() -> str:
    """The address of a network card. Where none can be read, as in small containers, getnode() makes one up
    in each process; its multicast bit shows that. Then it is the id of the kernel's start.
    """
    node = uuid.getnode()
    if node & MADE_UP:
        with contextlib.suppress(OSError):
            return BOOT.read_text().strip()
    return f"{node:x}"


def mine(who: str) -> bool:
    """Return whether `text` names this process."""
    return who == me()


def ended(who: str) -> bool:
    """Return whether the process has certainly ended: one of this machine that no longer runs. Processes of
    other machines are unknown.
    """
    machine, _, pid = who.rpartition("/")
    if machine != me().rpartition("/")[0] or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
