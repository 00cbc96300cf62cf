"""Describes existing objects as resources of a site. Each kind describes its objects; objects that can't be
written are left out, with the reason. Knows no kind and no backend.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial

from pydantic import ValidationError

from bfinfra.engine import graph
from bfinfra.engine.observe import FIRST, Kinds, ObservedState, ask, needs_of, specs_of
from bfinfra.engine.retry import RetryPolicy
from bfinfra.formats.yaml import holds
from bfinfra.model.context import ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.errors import RemoteError, Unreachable, Untrusted
from bfinfra.model.kind import Kind, Observation
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Edge, Key, edges, kinds_named
from bfinfra.model.resource import Spec, State
from bfinfra.model.site import Site
from bfinfra.model.yaml import unfit_key


@dataclass(frozen=True)
class Written:
    """A resource as a site file has it: its spec, and the description that it was made from."""

    spec: Spec
    description: Description


@dataclass(frozen=True)
class Described:
    """The existing objects. `left_out`: resources that can't be written, with the reason; `unreadable`: kinds
    that could not be read, with the error.
    """

    resources: Mapping[Key, Written] = field(default_factory=dict)
    left_out: tuple[tuple[Key, str], ...] = ()
    unreadable: Mapping[str, RemoteError] = field(default_factory=dict)


def asked(names: Iterable[str], spec_of: Callable[[str], type[Spec]]) -> frozenset[str]:
    """These kinds and all kinds that they refer to."""
    return graph.closure(names, lambda name: kinds_named(spec_of(name)))


def describe(kinds: Kinds, site: Site, retry: RetryPolicy, only: frozenset[str] = frozenset()) -> Described:
    """Ask each kind for its objects. `site`: the site so far, with the resources that it has already. `only`:
    the kinds to describe, with what they need; empty for all.
    """
    found, unreadable = _survey(kinds, site, retry)
    resources, left_out = _sorted_out(found, site.name, {name: kind.Spec for name, kind in kinds.items()})
    dangling = _dangling(resources, frozenset(site.resources))
    resources = {key: each for key, each in resources.items() if key not in dangling}
    if only:
        kept = _needed({key for key in resources if key.kind in only}, resources)
        resources = {key: each for key, each in resources.items() if key in kept}
        left_out = [(key, why) for key, why in left_out if key.kind in only]
        dangling = {key: why for key, why in dangling.items() if key.kind in only}
    return Described(
        dict(sorted(resources.items())), tuple(sorted({*left_out, *dangling.items()})), unreadable
    )


def _survey(
    kinds: Kinds, site: Site, retry: RetryPolicy
) -> tuple[list[tuple[Key, Description]], dict[str, RemoteError]]:
    """Return the descriptions of each kind, and the errors of kinds that could not be read. A kind that can't
    describe its objects is only observed, as far as the site has resources of it: other kinds may refer to
    them. Raises Unreachable or Untrusted if it is the vCenter itself; what other servers have is left out.
    """
    wanted = site.resources
    retry = replace(retry, first=min(FIRST, retry.lasts))
    observed, unreadable = ObservedState(), dict[str, RemoteError]()
    found: list[tuple[Key, Description]] = []
    for name in (name for level in graph.levels(kinds) for name in level):
        kind = kinds[name]
        needs = needs_of(name, kind, wanted, observed)
        try:
            if kind.undescribed:
                if specs_of(name, wanted):
                    observed.take(name, ask(kind, name, wanted, observed, retry))
                continue
            listed = retry.read(partial(_listed, kind, needs))
        except RemoteError as error:
            if isinstance(error, Unreachable | Untrusted) and _of_vcenter(error, site):
                raise
            unreadable[name] = error
            continue
        observed.take(name, Observation({each.name: each.state for each in listed}))
        found += [(Key(name, each.name), each) for each in listed]
    return found, unreadable


def _of_vcenter(error: RemoteError, site: Site) -> bool:
    server = site.vcenter.server if site.vcenter else ""
    return not server or error.server in ("", server, f"{server}:443")


def _listed(kind: Kind[Spec, State], needs: Mapping[Key, ResolvedRef]) -> list[Description]:
    return [*kind.describe(needs)]


def _sorted_out(
    found: Iterable[tuple[Key, Description]], site: str, models: Mapping[str, type[Spec]]
) -> tuple[dict[Key, Written], list[tuple[Key, str]]]:
    listed = [*found]
    count = Counter(key for key, _ in listed)
    written: dict[Key, Written] = {}
    left_out: list[tuple[Key, str]] = []
    for key, description in listed:
        why = _why_not(key, description, site, models[key.kind])
        if count[key] > 1:
            why = f"{count[key]} objects have this name"
        spec = why or _read(models[key.kind], description)
        if isinstance(spec, str):
            left_out.append((key, spec))
        else:
            written[key] = Written(spec, description)
    return written, left_out


def _why_not(key: Key, description: Description, site: str, model: type[Spec]) -> str:
    state = description.state
    mark = state.mark if isinstance(state, State) else None
    if mark is not None and mark.owner != (site, str(key)):
        return f"it belongs to {mark.address} of the site {mark.site}"
    if isinstance(state, State) and state.copy:
        return state.copy
    if unfit := unfit_key(key.name):
        return f"its name {unfit}, which a site's file can't hold"
    if not holds(description.fields):
        return "it contains half of a character, which a site's file can't hold"
    if not re.fullmatch(model.name_pattern, key.name):
        return f"a {key.kind} can't have this name; allowed: {model.name_rule}"
    return description.left_out


def _read(model: type[Spec], description: Description) -> Spec | str:
    """The spec, or why the fields don't make one."""
    try:
        return model.model_validate(dict(description.fields))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ").replace("Input should be", "expected to be")
        return f"{where}: {message}" if where else message


def _dangling(resources: Mapping[Key, Written], there: frozenset[Key]) -> dict[Key, str]:
    """The resources that name one that is not written although they require it, with the reason. `there`:
    what the site has already.
    """
    gone: dict[Key, str] = {}
    while True:
        more = {
            key: f"it names {edge.keys[0]}, which is not described"
            for key, each in resources.items()
            if key not in gone and (edge := _nobody(each.spec, there | (resources.keys() - gone.keys())))
        }
        if not more:
            return gone
        gone |= more


def _nobody(spec: Spec, known: frozenset[Key]) -> Edge | None:
    return next((edge for edge in edges(spec) if not edge.optional and known.isdisjoint(edge.keys)), None)


def _needed(keys: set[Key], resources: Mapping[Key, Written]) -> frozenset[Key]:
    """These resources and all that they require."""
    return graph.closure(keys, lambda key: _named(resources[key].spec, resources))


def _named(spec: Spec, resources: Mapping[Key, Written]) -> Iterator[Key]:
    for edge in edges(spec):
        if not edge.optional:
            yield from (key for key in edge.keys if key in resources)
