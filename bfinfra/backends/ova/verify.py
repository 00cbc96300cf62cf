"""Verifies an OVA: every digest, in one pass over the file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

from bfinfra.backends.ova.contents import Ova
from bfinfra.backends.ova.source import refusal

BLOCK = 1 << 20  # bytes read at a time; two blocks are kept: one is hashed while the next is read


def verify(ova: Ova, on_progress: Callable[[int], None], *, sha256: str = "") -> None:
    """Check every file against the manifest, and the whole against `sha256` if given. `on_progress`: bytes
    read so far, of `ova.size`.

    Raises Refusal if a digest differs, or if there is neither a manifest nor `sha256`.
    """
    if not ova.manifest and ova.source.far:
        raise refusal(
            ova.path,
            "it has no manifest, and is remote",
            "so later answers can't be verified",
            "download it, and give the file",
        )
    if not ova.manifest and not sha256:
        raise refusal(
            ova.path,
            "it has no manifest, so it can't be verified",
            next="give its sha256 from the download page",
        )
    whole = [hashlib.sha256()] if sha256 else []
    with ova.source.part(0, ova.size) as stream, ThreadPoolExecutor(2, thread_name_prefix="digest") as pool:
        reader = _Reader(stream, pool, on_progress)
        for member in sorted(ova.members.values(), key=lambda m: m.offset):
            reader.take(member.offset - reader.position, whole)
            algorithm, wanted = ova.manifest.get(member.name, ("", ""))
            own = [hashlib.new(algorithm.lower(), usedforsecurity=False)] if algorithm else []
            reader.take(member.size, [*whole, *own])
            if own and own[0].hexdigest() != wanted:
                raise refusal(
                    ova.path,
                    f"{member.name} is damaged",
                    f"its {algorithm} is {own[0].hexdigest()}, the manifest says {wanted}",
                )
        reader.take(ova.size - reader.position, whole)
    if sha256 and whole[0].hexdigest() != sha256.lower().replace(":", ""):
        raise refusal(
            ova.path,
            "it is not the expected file",
            f"its SHA-256 is {whole[0].hexdigest()}, expected {sha256.lower()}",
        )


class _Reader:
    """Reads while earlier blocks are hashed, each digest in its own thread."""

    def __init__(
        self, stream: BinaryIO, pool: ThreadPoolExecutor, on_progress: Callable[[int], None]
    ) -> None:
        self._stream, self._pool, self._on_progress = stream, pool, on_progress
        self.position = 0

    def take(self, count: int, digests: Sequence[Any]) -> None:
        """Read the next `count` bytes into all digests."""
        busy: list[Future[None]] = []
        while count > 0 and (block := self._stream.read(min(BLOCK, count))):
            _wait(busy)
            busy = [self._pool.submit(digest.update, block) for digest in digests]
            count -= len(block)
            self.position += len(block)
            self._on_progress(self.position)
        _wait(busy)


def _wait(busy: Sequence[Future[None]]) -> None:
    for each in busy:
        each.result()
