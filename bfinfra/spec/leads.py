"""Finds a site's references to secrets and files, each with its field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import BaseModel

from bfinfra.model.refs import Key
from bfinfra.model.resource import BESIDE_FIELDS, LEADS
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile

Spot = tuple[Key | None, str]
Lead = tuple[str, Secret | LocalFile]
"""A dotted field, and what it contains."""
PLAIN = frozenset({str, int, float, bool, type(None)})  # types of most values, which contain no reference


def walk(site: Site) -> Iterator[tuple[Spot, Secret | LocalFile]]:
    """Each reference with its resource and field, in the order of the files."""
    for name, value in (("vcenter", site.vcenter), ("pepper", site.pepper), ("drift", site.drift)):
        for field, found in _leads(name, value):
            yield (None, field), found
    for key, spec in site.resources.items():
        if LEADS not in (kept := vars(spec)):
            kept[LEADS] = tuple(_leads("", spec))
        for field, found in kept[LEADS]:
            yield (key, field), found


def _leads(at: str, value: object) -> list[Lead]:
    found: list[Lead] = []
    _add(found, at, value)
    return found


def _add(found: list[Lead], at: str, value: object) -> None:
    """Add what is in the value. One list for all levels, as each server has dozens of fields."""
    if isinstance(value, Secret | LocalFile):
        found.append((at, value))
        return
    inside: Iterable[tuple[object, object]] = ()
    if isinstance(value, BaseModel):
        inside = (each for each in vars(value).items() if each[0] not in BESIDE_FIELDS)
    elif isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, (tuple, list)):
        inside = enumerate(value)
    for name, inner in inside:
        if inner and type(inner) not in PLAIN:
            _add(found, f"{at}.{name}" if at else str(name), inner)
