"""Writes one existing object into the file of a site."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.describe import describe_one
from bfinfra.model.errors import BfinfraError, Problem, SiteError
from bfinfra.model.files import edit
from bfinfra.model.refs import Key
from bfinfra.model.site import Site


def import_object(
    site: Site, key: Key, again: Callable[[], Site], *, context: RunContext = LIVE
) -> tuple[Path, str]:
    """Write the object's block into the file that has its kind, else into the one with the site's name.
    Returns the file and the block. Only reads the vCenter.

    `again`: reads the site again; if that fails, the file gets its old text back. Raises BfinfraError.
    """
    from bfinfra.spec.writing import block, inserted

    written = describe_one(site, key, context=context)
    fields, fill_in = written.spec.applied(), written.description.fill_in
    file = _file(site, key.kind)
    before = file.read_text(encoding="utf-8")
    after = inserted(before, key.kind, key.name, fields, fill_in)
    edit(file, after)
    try:
        again()
    except SiteError as error:
        edit(file, before)
        raise BfinfraError(
            Problem(f"{key} does not fit into the site", str(file), "; ".join(map(str, error.problems)))
        ) from None
    return file, block(key.kind, {key.name: (fields, fill_in)})


def _file(site: Site, kind: str) -> Path:
    """The file that has the kind already, else the one with the site's name."""
    keys = (next((key for key in site.resources if key.kind == kind), None), None)
    for key in keys:
        place = site.place(key, "" if key else "site")
        if place is not None and place.file.is_file():
            return place.file
    files = [file for file in site.files if file.is_file()]
    if not files:
        raise BfinfraError(Problem("there is no file to write into", next="name the site by its file"))
    return files[0]
