"""References of a valid site that lead nowhere on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, LocalOutput

PLAIN = (str, int, float, type(None))  # most of a site; nothing stands in them


def references(site: Site) -> tuple[Problem, ...]:
    """In the order of the files."""
    found = [*_of(site, None, "vcenter", site.vcenter), *_of(site, None, "pepper", site.pepper)]
    for key, spec in site.resources.items():
        found += _of(site, key, "", spec)
    return tuple(found)


def _of(site: Site, key: Key | None, field: str, value: Any) -> Iterator[Problem]:
    for path, why, advice in _walk(value, field):
        yield Problem(f"{key or 'the site'}: {path} leads nowhere", site.place(key, path) or "", why, advice)


def _walk(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, Secret):
        if why := value.missing():
            yield path, why, f"export {value.target}=…" if value.way == "env" else ""
    elif isinstance(value, LocalFile):
        if not isinstance(value, LocalOutput) and not value.path.exists():
            yield path, f"there is no {value.path}", "paths begin at the folder of the site file"
    elif isinstance(value, (BaseModel, Mapping)):
        for name, inner in value if isinstance(value, BaseModel) else value.items():
            if not isinstance(inner, PLAIN):
                yield from _walk(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, (tuple, list)):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{path}.{index}")
