"""bfinfra's own state on this machine: folders and files that only their owner may read, never behind a link.

What is written whole is written by `model/files.py`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.files import OTHERS, make_folder


def home() -> Path:
    """The folder of bfinfra's own state on this machine; it may not exist."""
    return (
        Path(
            os.environ.get("BFINFRA_STATE_HOME")
            or os.environ.get("XDG_STATE_HOME")
            or Path.home() / ".local/state"
        )
        / "bfinfra"
    )


def folder(path: Path) -> Path:
    """Make a folder with mode 0700, and its missing parents too. Raises BfinfraError if it is a link,
    somebody else's, or open to others; OSError.
    """
    make_folder(path, 0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise _refused(
            path,
            "it is not a folder" if not path.is_symlink() else "it is a link",
            "remove it, or set BFINFRA_STATE_HOME to another folder",
        )
    if found.st_uid != os.geteuid():
        raise _refused(path, "it belongs to somebody else", "set BFINFRA_STATE_HOME to another folder")
    if found.st_mode & OTHERS:
        raise _refused(
            path,
            f"others may use it (mode {stat.S_IMODE(found.st_mode):04o})",
            f"check what is in it, then: chmod 700 {path}",
        )
    return path


def opened(path: Path, flags: int) -> int:
    """A descriptor of a regular file, whose mode becomes 0600. Raises BfinfraError, OSError."""
    if path.is_symlink():
        raise _refused(path, "it is a link", "remove it")
    handle = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink > 1:
        os.close(handle)
        raise _refused(path, "it is not a regular file of yours, or has a second link", "remove it")
    if found.st_mode & OTHERS:
        os.fchmod(handle, 0o600)
    return handle


def _refused(path: Path, why: str, todo: str) -> BfinfraError:
    return BfinfraError(Problem(f"{path} can't be used", why=why, next=todo))
