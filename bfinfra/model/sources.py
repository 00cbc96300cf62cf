"""Resolves a site's references: environment, files beside the site file, and the sandbox's replacements for
both.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from bfinfra.model.records import dataclass

LARGEST = 1 << 20  # bytes of a certificate, a key, a secret, a kubeconfig
_PART = r"[^/\x00-\x1f]*"
BELOW = rf"^(\./)*\.?[^./~\x00-\x1f]{_PART}(/+\.?[^./\x00-\x1f]{_PART})*/?$"
"""A path that leads out of no folder: not absolute, no `..`, no `~` at its start. API servers check it, too,
whose regular expressions have no lookaround.
"""
BELOW_RULE = "a relative path without .. in it, and without ~ at its start"
FILE = "x-file"  # in the schema of a field that names a file


@contextlib.contextmanager
def plain_file(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading. Raises OSError, also for a pipe or device, which may never end or
    never start.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        yield stream


def small(path: Path, largest: int = LARGEST) -> str:
    """The text of a regular file. Raises OSError, also for a pipe, a device, a file that is too large or not
    text.
    """
    with plain_file(path) as stream:
        data = stream.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest} bytes", str(path))
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "it is not UTF-8 text", str(path)) from None


@dataclass(frozen=True, slots=True)
class Sources:
    """`base`: the site file's folder; `stand_ins`: the sandbox's folder with replacements for files.

    `confined`: the site is somebody else's: it may name files below `base` and variables of `env`, and
    nothing else of this machine. Whoever confines a site sees to it that no link is below `base`.
    """

    base: Path = field(default_factory=Path.cwd)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    stand_ins: Path | None = None
    confined: bool = False

    def path(self, text: str) -> Path:
        """The absolute path of a file in a site, which may not exist. Raises ValueError if the site is
        confined, and the path leads elsewhere.
        """
        self._check(text)
        here = self._beside(text)
        if self.stand_ins is None:
            return here
        stand_in = self.stand_ins / text.lstrip("/")
        return stand_in if stand_in.exists() else here

    def _beside(self, text: str) -> Path:
        found = (self.base / expanded(text)).absolute()
        if ".." in found.parts and not self.base.exists():  # of a site that is still to be written
            return Path(os.path.normpath(found))
        return found

    def encloses(self, path: Path) -> bool:
        """Whether a file that another file names may be read: any, unless the site is confined."""
        return not self.confined or Path(os.path.normpath(path)).is_relative_to(self.base.absolute())

    def _check(self, text: str) -> None:
        if self.confined and not re.fullmatch(BELOW, text):
            raise ValueError(
                f"{text!r} leads out of the Site's own folder; write the path of one of its spec.files: "
                f"{BELOW_RULE}"
            )

    def made(self, text: str) -> Path:
        """The absolute path of something that bfinfra makes. In the sandbox it is always inside of
        `stand_ins`. Raises ValueError as `path` does.
        """
        self._check(text)
        if self.stand_ins is None:
            return self._beside(text)
        return self.stand_ins.joinpath(
            *(part for part in Path(text).parts if part not in ("..", "/", "~"))
        ).absolute()


def expanded(text: str) -> Path:
    """The path with `~` replaced by the home folder. `~nobody` stays as it is, and is not found."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file or folder on this machine. Compared and written as the site's text; `path` is absolute."""

    text: str
    path: Path = field(compare=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: object, info: core_schema.ValidationInfo) -> LocalFile:
            if isinstance(value, LocalFile):
                return value
            if not isinstance(value, str) or not value:
                raise ValueError("expected the path of a file, relative to the site file")
            sources = (info.context or {}).get("sources") or Sources()
            return cls(value, cls._at(value, sources))

        return core_schema.with_info_plain_validator_function(
            read, serialization=core_schema.plain_serializer_function_ser_schema(lambda f: f.text)
        )

    @classmethod
    def _at(cls, text: str, sources: Sources) -> Path:
        return sources.path(text)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, FILE: True}


@dataclass(frozen=True)
class LocalOutput(LocalFile):
    """A file or folder that bfinfra makes on this machine. In the sandbox it is made inside of
    `stand_ins`.
    """

    @classmethod
    def _at(cls, text: str, sources: Sources) -> Path:
        return sources.made(text)
