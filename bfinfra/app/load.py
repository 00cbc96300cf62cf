"""Reads a site's files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.model.site import Site
from bfinfra.spec.load import load as load_files

if TYPE_CHECKING:
    from bfinfra.sandbox import Running


def load(*paths: str | Path, sandbox: Running | None = None) -> Site:
    """Read a site's files; the sandbox brings values for its references. SiteError carries every problem."""
    files = [Path(path) for path in paths]
    if sandbox is None:
        return load_files(files)
    return load_files(files, env={**os.environ, **sandbox.env}, stand_ins=Path(sandbox.files))
