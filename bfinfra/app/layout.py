"""A site's files in the canonical layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bfinfra.model.errors import Problem, SiteError
from bfinfra.spec import files
from bfinfra.spec.layout import formatted


class Layout(NamedTuple):
    """A file's text as it is, and in the canonical layout."""

    file: Path
    before: str
    after: str


def layouts(paths: Sequence[Path]) -> list[Layout]:
    """The layouts of all files at `paths`. Writes nothing. Raises SiteError with every file's problems."""
    problems: list[Problem] = []
    found = []
    for file in files.listed(paths, problems):
        if (text := files.text_of(file, problems)) is not None:
            try:
                found.append(Layout(file, text, formatted(file, text)))
            except SiteError as error:
                problems += error.problems
    if problems:
        raise SiteError(*problems)
    return found
