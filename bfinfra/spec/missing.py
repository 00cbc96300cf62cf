"""References of a valid site that lead nowhere on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from bfinfra.model.errors import Problem
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, LocalOutput
from bfinfra.spec.leads import Spot, walk


def references(site: Site) -> tuple[Problem, ...]:
    """In the order of the files."""
    search = _Search()
    walk(site, search.see)
    return tuple(
        Problem(f"{key or 'the site'}: {path} leads nowhere", site.place(key, path) or "", why, advice) for (key, path), why, advice in search.found
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """What was found, and what is known of each file: hundreds of servers name the same few."""

    found: list[tuple[Spot, str, str]] = field(default_factory=list)
    looked: dict[object, object] = field(default_factory=dict)

    def see(self, at: Spot, value: Secret | LocalFile) -> None:
        """Whether it leads anywhere."""
        if isinstance(value, Secret):
            if why := self._once(value.leads, value.missing):
                self.found.append((at, str(why), f"export {value.target}=…" if value.way == "env" else ""))
        elif not isinstance(value, LocalOutput) and not self._once(value.path, value.path.exists):
            self.found.append((at, f"there is no {value.path}", "paths begin at the folder of the site file"))

    def _once(self, what: object, look: Callable[[], object]) -> object:
        if what not in self.looked:
            self.looked[what] = look()
        return self.looked[what]
