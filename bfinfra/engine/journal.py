"""The journal: a line before and after each step, append-only. `bfinfra history` shows it; nothing depends on
it.

Also the lock: one apply for each site and machine. The kernel holds it, so that it ends with its process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

from bfinfra.model import private
from bfinfra.model.errors import BfinfraError, Locked, Problem
from bfinfra.model.events import Event, Progressed, StepBegun
from bfinfra.model.files import FULL, PRIVATE, claim, make_folder
from bfinfra.model.names import LABEL_VALUE, LABEL_VALUE_RULE
from bfinfra.model.plan import plain
from bfinfra.model.site import Site
from bfinfra.model.trust import host_and_port

LONGEST = 1 << 20  # bytes of a line
MOST = 64 << 20  # bytes read, from the end
FILE = "journal.jsonl"
MOVED_ON = (FILE, "drift.json")  # what earlier releases kept by the site's name alone
LATEST = 2.5e11  # seconds since the epoch; before the year 10000
Line = dict[str, Any]
TEXTS, NUMBERS = ("run", "event", "key", "title", "ending", "action"), ("at", "seconds", "number")


def scope(site: Site) -> str:
    """The name of a site's state on this machine, for the functions here: that of the site, and behind a
    slash its vCenter. A site on two vCenters is two; on a sandbox it is another, and again another once
    that was reset.
    """
    if site.stand_ins is not None:
        return f"{site.name}/sandbox-{_sandbox(site.stand_ins / '.bfinfra' / 'begun')}"
    if site.vcenter is None:
        return site.name
    host, port = host_and_port(site.vcenter.server.lower())
    return f"{site.name}/vcenter-{host}{'' if port == 443 else f':{port}'}"


def _sandbox(path: Path) -> str:
    """When this file of a sandbox was made, which a reset deletes."""
    if not path.exists():
        with _on_disk("the sandbox's id can't be written", path):
            make_folder(path.parent, 0o700)
            claim(path, PRIVATE)
    return f"{path.stat().st_mtime_ns:x}"


def folder(scope: str) -> Path:
    """The folder of a site's journal and lock; made with mode 0700. What an earlier release kept of the site
    is moved into the folder of the first vCenter that it is used with.
    """
    path, fresh = _own(scope), not _own(scope).exists()
    with _on_disk("the folder for the journal can't be made", path):
        for each in (path.parent, path) if "/" in scope else (path,):
            private.folder(each)
        for name in MOVED_ON if fresh and _moves_on(scope) else ():
            with contextlib.suppress(FileNotFoundError):
                (path.parent / name).rename(path / name)
    return path


def place(scope: str) -> Path:
    """The same folder, which may not exist; that of an earlier release until the first write. Raises
    BfinfraError where the name would lead elsewhere.
    """
    path = _own(scope)
    return path.parent if _moves_on(scope) and not path.exists() else path


def _own(scope: str) -> Path:
    site, _, server = scope.partition("/")
    return private.home() / _checked(site) / server


def _checked(site: str) -> str:
    if not re.fullmatch(LABEL_VALUE, site):
        raise BfinfraError(Problem("this can't be the name of a site", site, f"allowed: {LABEL_VALUE_RULE}"))
    return site


def _moves_on(scope: str) -> bool:
    return scope.partition("/")[2].startswith("vcenter-")


@contextlib.contextmanager
def _on_disk(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        todo = (
            "free space there"
            if error.errno in FULL
            else "correct that, or set BFINFRA_STATE_HOME to another folder"
        )
        raise BfinfraError(
            Problem(what, str(path), error.strerror or "", f"{todo}, then run again")
        ) from None


class Journal:
    """A sink of events, safe to use from several threads.

    A line is on the disk before its step runs. Steps that start at the same time share one fdatasync.
    """

    def __init__(self, scope: str) -> None:
        self.path = folder(scope) / FILE
        self.run = secrets.token_hex(4)
        with _on_disk("the journal can't be opened", self.path):
            self._file = private.opened(self.path, os.O_RDWR | os.O_APPEND)
        self._torn = _torn(self._file)
        self._writing, self._syncing = Lock(), Lock()
        self._written = self._safe = 0

    def __call__(self, event: Event) -> None:
        """Append one event. Raises BfinfraError where the disk does not accept it, so that the step does not
        run.
        """
        if isinstance(event, Progressed):
            return
        line = json.dumps({"run": self.run, **event_data(event)}, separators=(",", ":")) + "\n"
        with _on_disk("the journal can't be written", self.path):
            with self._writing:
                self._append(line.encode())
                self._written += 1
                written = self._written
            if isinstance(event, StepBegun):
                self._sync_to_disk(written)

    def _sync_to_disk(self, written: int) -> None:
        """Return once the first `written` lines are on the disk. One fdatasync serves all lines written
        before it.
        """
        with self._syncing:
            if self._safe < written:
                with self._writing:  # else a line in the file may not be counted yet
                    upto = self._written
                os.fdatasync(self._file)
                self._safe = upto

    def _append(self, line: bytes) -> None:
        """Write the whole line, on a line of its own. A full disk may write a part of it first."""
        left = b"\n" + line if self._torn else line
        self._torn = True
        while left:
            left = left[os.write(self._file, left) :]
        self._torn = False

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _torn(file: int) -> bool:
    """Return whether the last line was cut short by a crash or a full disk."""
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"


def event_data(event: Event) -> Line:
    """An event as plain data: its class as `event`, keys as addresses."""
    fields = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return {
        "event": type(event).__name__,
        **{k: str(v) if k == "key" else plain(v) for k, v in fields.items()},
    }


def everywhere(site: str) -> Iterator[Line]:
    """The lines of every journal of a site of this name, whatever its vCenter: run by run, oldest first."""
    home = private.home() / _checked(site)
    found = [line for path in (home, *sorted(home.glob("*/"))) for line in _lines(path / FILE)]
    began: dict[str, float] = {}
    for line in found:
        began.setdefault(str(line.get("run", "")), float(line.get("at", 0)))
    yield from sorted(found, key=lambda line: began[str(line.get("run", ""))])


def read(scope: str) -> Iterator[Line]:
    """The journal's lines, oldest first. Lines cut short by a crash, or not written by a journal, are
    skipped.
    """
    return _lines(place(scope) / FILE)


def _lines(path: Path) -> Iterator[Line]:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as lines:
        lines.seek(max(0, lines.seek(0, os.SEEK_END) - MOST))
        while text := lines.readline(LONGEST):
            with contextlib.suppress(ValueError, RecursionError):
                if _is_line(line := json.loads(text)):
                    yield line


def _is_line(found: object) -> bool:
    """Return whether the fields of a line have the types that they are written with."""
    if not isinstance(found, dict) or not isinstance(problem := found.get("problem") or {}, dict):
        return False
    numbers = [each for name, each in found.items() if name in NUMBERS]
    texts = [each for name, each in found.items() if name in TEXTS]
    texts += [each for name, each in problem.items() if name == "what"]
    return all(isinstance(each, int | float) and 0 <= each <= LATEST for each in numbers) and all(
        isinstance(each, str) for each in texts
    )


@contextlib.contextmanager
def lock(scope: str) -> Iterator[None]:
    """Holds the lock of a site on this machine. Raises Locked with the process that holds it."""
    path = folder(scope) / "lock"
    with _on_disk("the lock can't be made", path):
        handle = private.opened(path, os.O_RDWR)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 100).decode(errors="replace").strip()
            raise Locked(
                Problem(
                    f"another apply of {scope.partition('/')[0]} runs on this machine",
                    str(path),
                    f"process {holder}" if holder else "",
                    "wait for it; the lock ends with that process",
                )
            ) from None
        with _on_disk("the lock can't be written", path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)
