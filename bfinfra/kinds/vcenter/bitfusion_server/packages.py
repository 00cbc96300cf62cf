"""The OVAs of a site. A run reads each one's headers once, and all of it once before it is uploaded; both
again if the file changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bfinfra.backends import ova
from bfinfra.kinds.vcenter.bitfusion_server.spec import Ova, Spec
from bfinfra.model.awaited import absent
from bfinfra.model.errors import BfinfraError, Problem, Refusal, RemoteError

if TYPE_CHECKING:
    from bfinfra.backends.transport import Transport

Version = tuple[str, int, object]
"""Path or URL, size, and a value that changes with the content."""


class Packages:
    """The OVAs that a run has read. Several threads use it; at worst two read the same OVA."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._sources: dict[Ova, ova.Source] = {}
        self._read: dict[Version, ova.Ova | Problem] = {}
        self._whole: dict[tuple[Version, str], Problem | None] = {}

    def look(self, of: Ova) -> ova.Ova | Problem:
        """The headers of an OVA, or why they can't be read; Absent if its file doesn't exist yet."""
        for field, file in (("ova.file", of.file), ("ova.trust.ca_file", of.trust.ca_file)):
            if file and (problem := absent(file, Spec.awaits[field])):
                return problem
        try:
            source = self._source(of)
        except OSError as error:
            return Problem(error.strerror or "it can't be read", next="correct the path, or download it")
        except (Refusal, RemoteError) as error:
            return error.problems[0]
        version = _version(source)
        if version not in self._read:
            try:
                self._read[version] = ova.read(of.file.path) if of.file else ova.read_from(source)
            except RemoteError as error:
                return error.problems[0]  # it may work the next time
            except BfinfraError as error:
                self._read[version] = error.problems[0]
            except ValueError as error:
                self._read[version] = Problem(str(error))
        return self._read[version]

    def damage(self, of: Ova, on_progress: Callable[[int], None] = lambda _: None) -> Problem | None:
        """Reads the whole OVA. Returns what is wrong with it, or None."""
        found = self.look(of)
        if isinstance(found, Problem):
            return found
        key = _version(found.source), of.sha256 or ""
        if key not in self._whole:
            try:
                ova.verify(found, on_progress, sha256=of.sha256 or "")
                self._whole[key] = None
            except Refusal as error:
                self._whole[key] = error.problems[0]
        return self._whole[key]

    def _source(self, of: Ova) -> ova.Source:
        """A file as it is now; a URL as it was at the first request of this run."""
        if of.file:
            return ova.LocalSource.of(of.file.path)
        if of not in self._sources:
            self._sources[of] = ova.RemoteSource.of(of.url or "", of.trust, self._transport)
        return self._sources[of]


def _version(source: ova.Source) -> Version:
    return source.where, source.size, source.state
