"""Decides which kinds a run uses, and gives each its backends. Apart from `worlds`, the only module that
knows every folder.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bfinfra.app.marked_kinds import SHOWN, MarkedKinds
from bfinfra.kinds import cluster_kinds
from bfinfra.kinds import kind as kind_named
from bfinfra.kinds import names as kind_names
from bfinfra.model import image_notes
from bfinfra.model.errors import BfinfraError, Problem, RemoteError, SiteError
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, kinds_named
from bfinfra.model.site import Site
from bfinfra.model.suggest import nearest
from bfinfra.spec.load import needed_references

if TYPE_CHECKING:
    from concurrent.futures import Future

    from bfinfra.app.context import RunContext
    from bfinfra.backends.ansible import LinuxHosts
    from bfinfra.backends.helm import Charts
    from bfinfra.backends.images import Images
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.survey_cache import SurveyCache
    from bfinfra.backends.transport import Transport
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.engine.observe import Kinds, ObservedState

IN_CLUSTERS = frozenset(
    {*kind_names("cluster"), *({*kind_names("supervisor")} & {*cluster_kinds(), "vks_addon", "service_vm"})}
)
"""Kinds that exist only in a cluster. A supervisor's clusters, and their add-ons, are objects of its own
cluster.
"""
ON_VCENTER = frozenset(kind_names("vcenter", "supervisor")) - IN_CLUSTERS
"""Kinds that exist only on a vCenter."""
SOURCES = frozenset({*kind_names("source"), "linux_host"})
"""Kinds that are only read, and only if the file names them."""


class Backends:
    """A run's backends, each made when it is first used. A kind's constructor names those it needs: the names
    here, or for a class of `backends/vcenter` the name of its module.
    """

    def __init__(self, site: Site, transport: Transport) -> None:
        self.site = site
        self.transport = transport
        self._opened = contextlib.ExitStack()

    @functools.cached_property
    def cache(self) -> SurveyCache:
        """The answers that the run has read."""
        from bfinfra.backends.survey_cache import SurveyCache

        return SurveyCache()

    @functools.cached_property
    def vcenter(self) -> VCenter | None:
        """The site's vCenter, or None. It logs in while its client library is imported."""
        if self.site.vcenter is None:
            return None
        from bfinfra.backends.vcenter.connector import Connector

        connector = Connector(self.site.vcenter, self.transport, self.site.name)
        connector.connect()
        from bfinfra.backends.vcenter import VCenter

        made = VCenter(self.site.vcenter, self.transport, site=self.site.name, connector=connector)
        made.share(self.cache)
        made.session.open()
        self._opened.callback(made.close)
        return made

    @functools.cached_property
    def clusters(self) -> Clusters:
        """The clients of the run's clusters. Supervisors are entered with vCenter's account."""
        from bfinfra.backends.kubernetes import Clusters

        def roots() -> str:
            return self.vcenter.authorities() if self.vcenter else ""

        made = Clusters(self.transport, self.site.vcenter, roots, self.cache)
        self._opened.callback(made.close)
        return made

    @functools.cached_property
    def charts(self) -> Charts:
        """Helm charts of registries."""
        from bfinfra.backends.helm import Charts

        return Charts(self.transport)

    @functools.cached_property
    def images(self) -> Images:
        """Container images: of this machine, and of registries."""
        from bfinfra.backends.images import Images

        made = Images(self.site, real=not self.transport.routed, tally=self.transport.tally)
        self._opened.callback(made.close)
        return made

    @functools.cached_property
    def hosts(self) -> LinuxHosts | None:
        """The site's Linux machines; None if it names none."""
        if not any(key.kind == "linux_host" for key in self.site.resources):
            return None
        from bfinfra.backends.ansible import LinuxHosts

        made = LinuxHosts(self.transport)
        self._opened.callback(made.close)
        return made

    def given(self, taken: inspect.Parameter) -> Any:
        """The backend of this name."""
        if taken.name in vars(self) or hasattr(type(self), taken.name):  # asking the instance would make it
            return getattr(self, taken.name)
        module = importlib.import_module(f"bfinfra.backends.vcenter.{taken.name}")
        cls = getattr(module, taken.annotation)
        return cls(**{name: getattr(self.vcenter, name) for name in _parameters(cls)})

    def close(self) -> None:
        """End the sessions of those that were made, the latest first."""
        self._opened.close()


def bind(name: str, backends: Backends) -> Any:
    """The kind with its backends; None if it needs a vCenter and the site has none. Raises SiteError if the
    site has a resource of it.
    """
    site = backends.site
    if name in ON_VCENTER and site.vcenter is None:
        if first := next((key for key in site.resources if key.kind == name), None):
            raise SiteError(
                Problem(
                    f"{first} needs a vCenter, and the site names none",
                    site.place(first) or str(first),
                    next="add vcenter: with server, username, password and trust",
                )
            )
        return None
    cls = kind_named(name)
    return cls(**{name: backends.given(taken) for name, taken in _parameters(cls).items()})


@functools.cache
def _parameters(cls: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


@dataclass(frozen=True)
class BoundKinds:
    """The kinds that a run reads, by name. `make`: makes further kinds, by name."""

    kinds: dict[str, Any]
    make: Callable[[Iterable[str]], dict[str, Any]]
    backends: Backends
    leave: Callable[[], None]
    """Ends the sessions, to be called once all is read."""
    partly: bool = False
    """Only these are asked, whatever else there is."""
    marked: Callable[[], Collection[str]] = tuple
    """Returns the kinds that were left out and have something."""


@contextlib.contextmanager
def bound_kinds(
    site: Site,
    context: RunContext,
    wanted: Specs | None = None,
    *,
    read_only: bool,
    targets: Collection[Key] = (),
) -> Iterator[BoundKinds]:
    """The kinds that may have resources, with their backends; with `targets` those that must be asked about
    them. The survey of `wanted` starts at once. Sessions are closed in any case.
    """
    from bfinfra.app.shut_vcenter import hidden, missing_file
    from bfinfra.backends import background
    from bfinfra.engine.target import kinds_needed

    wants = site.resources if wanted is None else wanted
    away = missing_file(site) if any(key.kind in ON_VCENTER for key in wants) else None
    site = replace(site, vcenter=None) if away else site
    only = kinds_needed(targets, wants, _looks_at)
    if missing := needed_references(site, wants, only if wants else SOURCES):
        raise SiteError(*missing)
    backends = Backends(site, context.transport(read_only=read_only))
    leaving: list[Future[None]] = []

    def kinds(names: Iterable[str]) -> dict[str, Any]:
        found = {}
        for name in names:
            made = hidden(name, away) if away and name in ON_VCENTER else bind(name, backends)
            if made is not None:
                found[name] = made
                if wanted is not None:
                    _prefetch(name, made, wanted, backends.cache)
        return found

    def leave() -> None:
        leaving.append(background.start(backends.close, "leave"))

    try:
        if only is None or not only.isdisjoint(kind_names("vcenter", "supervisor")):
            _ = backends.vcenter  # logs in while the kinds are imported
        names = [name for name in surveyed(site) if only is None or name in only]
        marked: Callable[[], Collection[str]] = tuple
        left_out: Collection[str] = ()
        if wanted is not None and only is None and backends.vcenter:
            marked = MarkedKinds(backends.vcenter, backends.cache, site.name)
            left_out = SHOWN - {key.kind for key in (*wants, *site.resources)}
        found = kinds(name for name in names if name not in left_out)
        looked_at = frozenset[str]().union(*map(_looks_at, found)) if left_out else ()
        found |= kinds(name for name in names if name in left_out and name in looked_at)
        yield BoundKinds(found, kinds, backends, leave, only is not None, marked)
    finally:
        for each in leaving:
            each.result()
        backends.close()
        backends.transport.close()


def _looks_at(name: str) -> frozenset[str]:
    """The kinds that the survey of a kind looks at."""
    kind = kind_named(name)
    return frozenset() if kind.alone else kinds_named(kind.Spec) | kinds_named(kind.State)


def _prefetch(name: str, made: Any, wanted: Mapping[Key, Any], cache: SurveyCache) -> None:
    from bfinfra.engine.observe import specs_of

    for reading in made.prefetch:
        cache.prefetch(reading, name, functools.partial(made.fetch, reading, specs_of(name, wanted)))


def known_kinds(targets: Iterable[Key]) -> None:
    """Raises BfinfraError for a target of an unknown kind, before anything is read."""
    problems = [
        Problem(f"there is no kind {key.kind}", f"--target {key}", next=nearest(key.kind, kind_names()))
        for key in targets
        if key.kind not in kind_names()
    ]
    if problems:
        raise BfinfraError(*problems)


def surveyed(site: Site) -> list[str]:
    """The kinds that may have resources, by what the site contains; first those that it has."""
    used = {key.kind for key in site.resources}
    idle = SOURCES - used
    if not used & IN_CLUSTERS:
        idle |= IN_CLUSTERS
    if "linux_host" not in used:
        idle |= {*kind_names("machine")}
    if not image_notes.exist(site):
        idle |= {*kind_names("image")} - used
    return sorted({*kind_names()} - idle, key=lambda name: (name not in used, name))


def observe(
    bound: BoundKinds, wanted: Mapping[Key, object], context: RunContext, *, lasting: bool = False
) -> ObservedState:
    """The survey. Kinds that the site doesn't use are imported and read only where they may have something:
    those of clusters if a cluster was found, those whose marks show if one does. With `lasting` all of
    the latter, as others may mark something meanwhile.
    """
    from bfinfra.engine.observe import survey
    from bfinfra.model.surveying import SurveyProgress

    def further(found: ObservedState) -> Kinds:
        names: set[str] = set()
        try:
            names |= SHOWN if lasting else {*context.retry.read(bound.marked)}
        except RemoteError as error:  # they would be told the same
            found.unreadable |= dict.fromkeys(SHOWN - bound.kinds.keys(), str(error))
        if any(getattr(state, "endpoint", None) is not None for state in found.states.values()):
            names |= IN_CLUSTERS
        late = {} if bound.partly else bound.make(sorted(names - bound.kinds.keys()))
        bound.kinds.update(late)
        return late

    progress = SurveyProgress(bound.backends.transport.outages.waiting)
    with context.surveying(progress):
        found = survey(bound.kinds, wanted, context.retry, progress, further)
    bound.backends.cache.end_survey()
    return found
