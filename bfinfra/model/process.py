"""Who is at work: a machine and a process of it, as a word that a server keeps and a later run can judge."""

from __future__ import annotations

import os
import socket
import uuid


def me() -> str:
    """This machine and this process: `host/1a2b3c/4711`."""
    return f"{socket.gethostname()}/{uuid.getnode():x}/{os.getpid()}"


def mine(who: str) -> bool:
    """Whether it is this process."""
    return who == me()


def ended(who: str) -> bool:
    """Whether it surely works no more: a process of this machine that has ended. Of other machines nothing is
    known.
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
