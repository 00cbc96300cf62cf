"""Names a process on a machine, so that a server can keep the name and a later run can judge it."""

from __future__ import annotations

import os
import socket
import uuid


def me() -> str:
    """This machine and this process: `host/1a2b3c/4711`."""
    return f"{socket.gethostname()}/{uuid.getnode():x}/{os.getpid()}"


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
