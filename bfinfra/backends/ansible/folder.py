"""A run's own folder with sockets, host keys and inventories, mode 0700, never a secret. It is removed when
the run ends, at the latest by the next run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

PREFIX = "bfinfra-ssh-"
POLL = 0.02  # seconds
FIT = re.compile(r"/[A-Za-z0-9._/-]{0,39}")
"""The path of temporary files: a socket's path has 108 characters in all, to which ssh adds. In ssh's options
blanks, %, ~ and quotes have a meaning.
"""


def make() -> Path:
    """Make a new folder, and remove those of killed runs."""
    base = Path(found if FIT.fullmatch(found := tempfile.gettempdir()) else "/tmp")  # noqa: S108 - a folder of its own in it, 0700
    for left in base.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if left.lstat().st_uid == os.geteuid() and not _alive(int(left.name.split("-")[2])):
                shutil.rmtree(left)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))


def remove(folder: Path) -> None:
    """Remove the folder."""
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def handed(path: Path, content: bytes) -> Iterator[Path]:
    """Give a secret to the one reader of `path`, through a named pipe: it is in no file, argument or
    environment.
    """
    os.mkfifo(path, 0o600)
    over = threading.Event()
    thread = threading.Thread(
        target=_feed, args=(path, content, over), name=f"hands-{path.name}", daemon=True
    )
    thread.start()
    try:
        yield path
    finally:
        over.set()
        thread.join()
        path.unlink(missing_ok=True)


def _feed(path: Path, content: bytes, over: threading.Event) -> None:
    while not over.is_set():
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return
            over.wait(POLL)  # no process reads it yet
            continue
        with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as out:
            os.set_blocking(pipe, True)  # more than a pipe holds waits for its reader
            out.write(content)
        return


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
