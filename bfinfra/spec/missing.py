"""Finds the secrets and files that a valid site names and that do not exist on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from bfinfra.formats.shell import word
from bfinfra.formats.visible import visible
from bfinfra.model.awaited import absent, meaning, source
from bfinfra.model.errors import Problem
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, LocalOutput
from bfinfra.spec.leads import Spot, walk


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference that leads nowhere. `key`: the resource that has it, None for a setting of the site;
    `field`: dotted.

    `awaited`: it is a file that may be brought later. Only what needs it waits.
    """

    key: Key | None
    field: str
    problem: Problem
    awaited: bool = False


def references(site: Site) -> tuple[Reference, ...]:
    """The references that lead nowhere, in the order of the files."""
    search = _Search(site)
    for at, value in walk(site):
        search.see(at, value)
    return tuple(search.found)


FILES = "paths begin at the folder of the site file"


@dataclass(frozen=True, slots=True)
class _Search:
    """The files that were found so far. Each is looked up once, as many resources may name it."""

    site: Site
    found: list[Reference] = field(default_factory=list)
    looked: dict[object, object] = field(default_factory=dict)
    ways: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Kind and dotted field → how to get its file, and what its absence means."""

    def see(self, at: Spot, value: Secret | LocalFile) -> None:
        """Add the reference to `found` if it leads nowhere."""
        key, path = at
        read = isinstance(value, LocalFile) or value.way == "file"
        how, lost = self._awaits(key, path) if read and key else ("", "")
        if how and key:
            self._see_awaited(key, path, value, how, lost)
        elif isinstance(value, Secret):
            if why := self._once(value.leads, value.missing):
                self._note(
                    at, str(why), f"export {word(visible(value.target))}=…" if value.way == "env" else FILES
                )
        elif not isinstance(value, LocalOutput) and not self._once(str(value.path), value.path.exists):
            self._note(at, f"there is no {value.path}", FILES)

    def _see_awaited(self, key: Key, path: str, value: Secret | LocalFile, how: str, why: str) -> None:
        leads = str(value.path) if isinstance(value, LocalFile) else value.leads
        problem = self._once(("awaited", leads, why), lambda: _absent(value, how, why))
        if isinstance(problem, Problem):
            where = self.site.place(key, path) or str(key)
            placed = Problem(f"{key}: {problem.what}", where, problem.why, problem.next)
            self.found.append(Reference(key, path, placed, awaited=True))

    def _awaits(self, key: Key, path: str) -> tuple[str, str]:
        """Return how to get the file, and what its absence means, if it may be brought later; "" for one
        that must be there. Computed once for all resources of a kind.
        """
        if (key.kind, path) not in self.ways:
            spec = type(self.site.resources[key])
            self.ways[key.kind, path] = source(spec, path), meaning(spec, path)
        return self.ways[key.kind, path]

    def _note(self, at: Spot, why: str, advice: str) -> None:
        key, path = at
        where = self.site.place(key, path) or ""
        self.found.append(
            Reference(key, path, Problem(f"{key or 'the site'}: {path} leads nowhere", where, why, advice))
        )

    def _once(self, what: object, look: Callable[[], object]) -> object:
        if what not in self.looked:
            self.looked[what] = look()
        return self.looked[what]


def _absent(value: Secret | LocalFile, how: str, why: str) -> Problem | None:
    file = value if isinstance(value, LocalFile) else value.file
    return absent(file, how, why) if file else None
