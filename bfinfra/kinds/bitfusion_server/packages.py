"""The OVAs of a site: each looked into once, and read whole once before anything is made from it, for every state of its file."""

from __future__ import annotations

from collections.abc import Callable

from bfinfra.backends import ova
from bfinfra.model.errors import BfinfraError, Problem, Refusal
from bfinfra.model.sources import LocalFile

File = tuple[str, int, int]
"""Path, size, time of change in ns."""


class Packages:
    """What a run has read of its OVAs; used by several threads, which at worst read one twice."""

    def __init__(self) -> None:
        self._read: dict[File, ova.Ova | Problem] = {}
        self._whole: dict[tuple[File, str], Problem | None] = {}

    def look(self, file: LocalFile) -> ova.Ova | Problem:
        """What its headers say, or why they can't be read."""
        try:
            stat = file.path.stat()
        except OSError as error:
            return Problem(error.strerror or "it can't be read", next="correct the path, or download it")
        key = (str(file.path), stat.st_size, stat.st_mtime_ns)
        if key not in self._read:
            try:
                self._read[key] = ova.read(file.path)
            except BfinfraError as error:
                self._read[key] = error.problems[0]
            except ValueError as error:
                self._read[key] = Problem(str(error))
        return self._read[key]

    def damage(self, file: LocalFile, sha256: str | None, on_progress: Callable[[int], None] = lambda _: None) -> Problem | None:
        """Reads it whole: what is wrong with it, or None."""
        found = self.look(file)
        if isinstance(found, Problem):
            return found
        key = ((str(found.path), found.size, found.changed), sha256 or "")
        if key not in self._whole:
            try:
                ova.verify(found, on_progress, sha256=sha256 or "")
                self._whole[key] = None
            except Refusal as error:
                self._whole[key] = error.problems[0]
        return self._whole[key]
