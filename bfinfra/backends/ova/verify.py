"""Whether an OVA is whole: every digest, in one pass over the file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import Any

from bfinfra.backends.ova.contents import Ova, refusal

BLOCK = 1 << 20  # bytes read at a time


def verify(ova: Ova, on_progress: Callable[[int], None], *, sha256: str = "") -> None:
    """Check every file against the manifest, and the whole against `sha256` where given. `on_progress`: bytes read so far, of `ova.size`.

    Refusal where something differs, or where there is neither a manifest nor a digest to check against.
    """
    if not ova.manifest and not sha256:
        raise refusal(ova.path, "it has no manifest, so nothing says whether it is whole", next="give its sha256 from the download page")
    whole = hashlib.sha256()
    with ova.opened() as stream:
        reader = _Reader(stream, whole, on_progress)
        for member in sorted(ova.members.values(), key=lambda m: m.offset):
            reader.take(member.offset - reader.position)
            algorithm, wanted = ova.manifest.get(member.name, ("", ""))
            if not algorithm:
                continue
            found = hashlib.new(algorithm.lower(), usedforsecurity=False)
            reader.take(member.size, found)
            if found.hexdigest() != wanted:
                raise refusal(ova.path, f"{member.name} is damaged", f"its {algorithm} is {found.hexdigest()}, the manifest says {wanted}")
        reader.take(ova.size - reader.position)
    if sha256 and whole.hexdigest() != sha256.lower().replace(":", ""):
        raise refusal(ova.path, "it is not the file that is wanted", f"its SHA-256 is {whole.hexdigest()}, and {sha256.lower()} is asked for")


class _Reader:
    """Reads on, into the digest of the whole and that of a member."""

    def __init__(self, stream: io.FileIO, whole: Any, on_progress: Callable[[int], None]) -> None:
        self._stream, self._whole, self._on_progress = stream, whole, on_progress
        self.position = 0

    def take(self, count: int, also: Any = None) -> None:
        """The next `count` bytes."""
        while count > 0 and (block := self._stream.read(min(BLOCK, count))):
            self._whole.update(block)
            if also is not None:
                also.update(block)
            count -= len(block)
            self.position += len(block)
            self._on_progress(self.position)
