"""Whatever in a site leads outside of it: secrets and files, each with the place where it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel

from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile

Spot = tuple[Key | None, str]
See = Callable[[Spot, Secret | LocalFile], None]
PLAIN = frozenset({str, int, float, bool, type(None)})  # most of a site; nothing stands in them


def walk(site: Site, see: See) -> None:
    """Show everything to `see`, in the order of the files."""
    _walk((None, "vcenter"), site.vcenter, see)
    _walk((None, "pepper"), site.pepper, see)
    _walk((None, "drift"), site.drift, see)
    for key, spec in site.resources.items():
        _walk((key, ""), spec, see)


def _walk(at: Spot, value: object, see: See) -> None:
    if isinstance(value, BaseModel):
        _inside(at, vars(value).items(), see)
    elif isinstance(value, Mapping):
        _inside(at, value.items(), see)
    elif isinstance(value, (tuple, list)):
        _inside(at, enumerate(value), see)
    elif isinstance(value, Secret | LocalFile):
        see(at, value)


def _inside(at: Spot, values: Iterable[tuple[object, object]], see: See) -> None:
    key, above = at
    for name, inner in values:
        if inner and type(inner) not in PLAIN:
            _walk((key, f"{above}.{name}" if above else str(name)), inner, see)
