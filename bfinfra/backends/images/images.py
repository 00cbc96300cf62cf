"""Build contexts of a site on this machine: where they are, what is in them, and what can build them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends.images import folder, source, tools
from bfinfra.backends.images.folder import Folder
from bfinfra.backends.images.tools import Recipe, Tool
from bfinfra.model import image_notes, private
from bfinfra.model.errors import Problem
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.mark import Mark
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.transport import Tally

MAGIC = {".deb": b"!<arch>\n", ".rpm": b"\xed\xab\xee\xdb"}
SANDBOX = "the sandbox builds nothing: it has no registry and no base images"


class Images:
    """The contexts that a site rendered here. `real`: whether images may be built and pushed at all; `tally`
    counts the writes.
    """

    def __init__(self, site: Site, *, real: bool = True, tally: Tally | None = None) -> None:
        self._real, self._tally = real, tally
        self._index, self._records = image_notes.contexts(site), image_notes.records(site)
        self._lock = threading.Lock()
        self._found: tuple[Tool | None, str] | None = None
        self._digests: dict[tuple[str, int, int], str] = {}

    def close(self) -> None:
        """Nothing to close."""

    def tool(self) -> tuple[Tool | None, str]:
        """The build tool of this machine, or None and why; searched once in a run."""
        with self._lock:
            if self._found is None:
                self._found = tools.find() if self._real else (None, SANDBOX)
            return self._found

    def known(self) -> dict[str, Path]:
        """Address → folder of what this site rendered on this machine. It only shows where to look; the mark
        there decides.
        """
        try:
            data = json.loads(self._index.read_text())
            return {str(address): Path(path) for address, path in data.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}

    def look(self, path: Path, names: frozenset[str]) -> Folder | None:
        """The folder's state, among `names` and what was written there."""
        return folder.look(path, names)

    def package(self, path: Path) -> tuple[str, str]:
        """SHA-256 of a package, or why it is none. Computed once, as long as the file doesn't change."""
        try:
            info = path.stat()
            with path.open("rb") as stream:
                if not stream.read(8).startswith(MAGIC[path.suffix]):
                    return "", f"{path} is no {path.suffix} package"
                stream.seek(0)
                key = (str(path), info.st_size, info.st_mtime_ns)
                if key not in self._digests:
                    self._digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
                return self._digests[key], ""
        except OSError as error:
            return "", f"{path} can't be read: {error.strerror}"

    def render(
        self, path: Path, mark: Mark, wanted: Mapping[str, bytes | Path], modes: Mapping[str, int]
    ) -> None:
        """Write a context; noted in the index first, so that it is found again after a crash."""
        self._count("render")
        self._note(mark.address, path)
        folder.write(path, mark, wanted, modes)

    def commit(self, path: Path, mark: Mark) -> None:
        """Write the mark of a finished context; noted in the index first, as an adopted one isn't yet."""
        self._count("commit")
        self._note(mark.address, path)
        folder.note(path, mark)

    def source(self, path: Path, dockerfile: str) -> str | Problem:
        """The digest of a user's folder that an image is built from, or the problem."""
        return source.digest(path, dockerfile)

    def records(self) -> dict[str, Path]:
        """Name → folder, for the images noted here that are built from users' folders."""
        home = self._records
        return {path.name: path for path in sorted(home.iterdir())} if home.is_dir() else {}

    def record(self, name: str) -> Path:
        """The folder of this name's notes, which may not exist."""
        return self._records / name

    def begin(self, path: Path, mark: Mark) -> None:
        """Make a folder for notes if it is missing; existing notes are kept."""
        self._count("note")
        folder.write(path, mark, {}, {})

    def build(self, path: Path, mark: Mark, image: str, content: str, recipe: Recipe | None = None) -> None:
        """Build `image`, by default from `path` itself; the record there then says that it was built from
        `content`. Raises Rejected.
        """
        self._count("build")
        tools.run(self._tool().build(recipe or Recipe(path), image), f"the build of {image}")
        folder.note(path, mark, built=f"{image} {content}")

    def push(self, path: Path, mark: Mark, image: str, content: str) -> None:
        """Push `image` with the tool's own login. Raises Rejected."""
        self._count("push")
        tools.run(self._tool().push(image), f"the push of {image}")
        folder.note(path, mark, pushed=f"{image} {content}")

    @contextlib.contextmanager
    def saved(self, image: str) -> Iterator[Path]:
        """A context with an archive of an image that was built here. Raises Rejected, BfinfraError."""
        folder = private.folder(self._index.with_name("saved"))
        path = folder / f"{hashlib.sha256(image.encode()).hexdigest()[:16]}.tar"
        path.unlink(missing_ok=True)
        try:
            tools.run(self._tool().save(image, path), f"saving {image}")
            yield path
        finally:
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # another image has this name now
                folder.rmdir()

    def remove(self, path: Path, address: str) -> None:
        """Remove what was rendered; images are kept."""
        self._count("remove")
        folder.remove(path)
        self._note(address, None)

    def forget(self, path: Path) -> None:
        """Remove the notes; images are kept."""
        self._count("forget")
        folder.remove(path)

    def _count(self, what: str) -> None:
        if self._tally is not None:
            self._tally.count(f"{what} image context", writing=True)

    def _tool(self) -> Tool:
        tool, why = self.tool()
        assert tool is not None, why
        return tool

    def _note(self, address: str, path: Path | None) -> None:
        with self._lock:
            known = {**{a: str(p) for a, p in self.known().items()}, address: str(path)}
            if path is None:
                del known[address]
            private.folder(self._index.parent)
            write_whole(self._index, json.dumps(known, indent=1) + "\n", PRIVATE)
