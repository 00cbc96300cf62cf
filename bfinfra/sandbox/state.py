"""The state folder: one process at a time, files written whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

FORMAT = 1


class Unreadable(RuntimeError):
    """The saved state is damaged, or was written by another version."""


class Busy(RuntimeError):
    """Another process serves from this folder."""


def hold(folder: Path) -> BinaryIO:
    """Take the folder's lock, which is held until the file is closed. Raises Busy if another process holds
    it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = (folder / "lock").open("wb")
    for _ in range(50):  # a process that only checks whether it is held holds it for a moment
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return file
    file.close()
    raise Busy(f"another sandbox runs on {folder}: stop it, or take another folder")


def write(path: Path, data: Any) -> None:
    """JSON, readable by the owner only, replaced in one step."""
    write_text(path, json.dumps(data))


def write_text(path: Path, text: str) -> None:
    """Text, readable by the owner only, replaced in one step."""
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)


def read(path: Path) -> Any:
    """The JSON of a file; None where there is none."""
    return json.loads(path.read_text()) if path.exists() else None
