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
PLAIN = frozenset({str, int, float, bool, type(None)})  # types of most values, which contain no reference


def walk(site: Site) -> Iterator[tuple[Spot, Secret | LocalFile]]:
    """Each reference with its resource and field, in the order of the files."""
    for name, value in (("vcenter", site.vcenter), ("pepper", site.pepper), ("drift", site.drift)):
        for field, found in _below(name, value):
            yield (None, field), found
    for key, spec in site.resources.items():
        if LEADS not in (kept := vars(spec)):
            kept[LEADS] = tuple(_below("", spec))
        for field, found in kept[LEADS]:
            yield (key, field), found


def _below(at: str, value: object) -> Iterator[tuple[str, Secret | LocalFile]]:
    if isinstance(value, BaseModel):
        yield from _inside(
            at, ((name, inner) for name, inner in vars(value).items() if name not in BESIDE_FIELDS)
        )
    elif isinstance(value, Mapping):
        yield from _inside(at, value.items())
    elif isinstance(value, (tuple, list)):
        yield from _inside(at, enumerate(value))
    elif isinstance(value, Secret | LocalFile):
        yield at, value


def _inside(above: str, values: Iterable[tuple[object, object]]) -> Iterator[tuple[str, Secret | LocalFile]]:
    for name, inner in values:
        if inner and type(inner) not in PLAIN:
            yield from _below(f"{above}.{name}" if above else str(name), inner)
