"""References of a valid site that lead nowhere on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, LocalOutput

Spot = tuple[Key | None, str]
PLAIN = (str, int, float, type(None))  # most of a site; nothing stands in them


def references(site: Site) -> tuple[Problem, ...]:
    """In the order of the files."""
    search = _Search()
    search.walk((None, "vcenter"), site.vcenter)
    search.walk((None, "pepper"), site.pepper)
    for key, spec in site.resources.items():
        search.walk((key, ""), spec)
    return tuple(
        Problem(f"{key or 'the site'}: {path} leads nowhere", site.place(key, path) or "", why, advice) for (key, path), why, advice in search.found
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """What was found, and what is known of each file: hundreds of servers name the same few."""

    found: list[tuple[Spot, str, str]] = field(default_factory=list)
    looked: dict[object, object] = field(default_factory=dict)

    def walk(self, at: Spot, value: object) -> None:
        """Everything in `value`."""
        if isinstance(value, BaseModel):
            self._inside(at, vars(value).items())
        elif isinstance(value, Mapping):
            self._inside(at, value.items())
        elif isinstance(value, (tuple, list)):
            self._inside(at, enumerate(value))
        elif isinstance(value, Secret):
            if why := self._once(value.leads, value.missing):
                self.found.append((at, str(why), f"export {value.target}=…" if value.way == "env" else ""))
        elif isinstance(value, LocalFile) and not isinstance(value, LocalOutput) and not self._once(value.path, value.path.exists):
            self.found.append((at, f"there is no {value.path}", "paths begin at the folder of the site file"))

    def _inside(self, at: Spot, values: Iterable[tuple[object, object]]) -> None:
        key, above = at
        for name, inner in values:
            if not isinstance(inner, PLAIN):
                self.walk((key, f"{above}.{name}" if above else str(name)), inner)

    def _once(self, what: object, look: Callable[[], object]) -> object:
        if what not in self.looked:
            self.looked[what] = look()
        return self.looked[what]
