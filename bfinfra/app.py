"""The wiring: binds kinds to backends and calls the stages of the path in their order. The only file that
knows every folder.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.binding import behind, bound_to, provided, shut
from bfinfra.engine.observe import ObservedState, begun, survey
from bfinfra.engine.plan import DesiredState, make
from bfinfra.engine.retry import RetryPolicy
from bfinfra.kinds import kind as kind_named
from bfinfra.kinds import names as kind_names
from bfinfra.model.drift import Report, judged
from bfinfra.model.errors import BfinfraError, Problem, SiteError, Warned
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Action, Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import Rights, Use
from bfinfra.model.site import Site
from bfinfra.model.stop import Stop
from bfinfra.model.suggest import nearest
from bfinfra.model.trust import Trust
from bfinfra.spec.load import load as load_files
from bfinfra.spec.load import needed_references

if TYPE_CHECKING:
    from bfinfra.backends.ansible.hostkeys import Shown as HostKeys
    from bfinfra.backends.certificate import Shown
    from bfinfra.backends.transport import Middleware, Transport
    from bfinfra.doctor.ground import CheckContext
    from bfinfra.engine.apply import Options
    from bfinfra.engine.guard import Allow
    from bfinfra.engine.saved import Saved
    from bfinfra.kinds.machine.flexdirect_host.health import Examined
    from bfinfra.kinds.source.bitfusion_token import State as Token
    from bfinfra.model.events import Sink
    from bfinfra.model.finding import Finding
    from bfinfra.sandbox import Running


@dataclass(frozen=True)
class RunContext:
    """Where a run takes place: the sandbox instead of the world, extra middleware of the seam, patience with
    servers, who may stop it.
    """

    sandbox: Running | None = None
    middleware: tuple[Middleware, ...] = ()
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    stop: Stop = field(default_factory=Stop)

    def seam(self, *, read_only: bool = True, patience: float | None = None) -> Transport:
        """The one way to its servers. `patience`: seconds for an answer."""
        from bfinfra.backends.transport import Transport

        return Transport(
            read_only=read_only,
            route=self.sandbox.lookup if self.sandbox else None,
            middleware=self.middleware,
            patience=patience,
            check=self.stop.check,
        )


@dataclass(frozen=True)
class Rotation:
    """`token`: a bitfusion_token's name, "" where the site uses only one. `restart`: also what holds the
    token before.
    """

    token: str = ""
    restart: bool = False


IN_CLUSTERS = frozenset({*kind_names("cluster"), "tanzu_cluster"})
"""Where no cluster stands there is none of them; a Tanzu cluster is an object of its supervisor's cluster."""
SOURCES = frozenset({*kind_names("source"), "linux_host"})
"""Kinds that are only read: there is nothing of them but what a file says."""
THE_WORLD = RunContext()
HASTE = 10.0  # seconds that the doctor waits for an answer


def load(*paths: str | Path, sandbox: Running | None = None) -> Site:
    """Read a site's files; the sandbox brings values for its references. SiteError carries every problem."""
    import os

    if sandbox is None:
        return load_files([Path(p) for p in paths])
    return load_files(
        [Path(p) for p in paths], env={**os.environ, **sandbox.env}, overlay=Path(sandbox.files)
    )


def plan(
    site: Site,
    *,
    destroy: bool = False,
    adopt: frozenset[Key] = frozenset(),
    rotation: Rotation | None = None,
    context: RunContext = THE_WORLD,
) -> Plan:
    """What an apply would do. Read-only: the seam refuses every writing request. With a `rotation`, what that
    would do.
    """
    from bfinfra.engine import target
    from bfinfra.kinds.cluster_locator import CLUSTERS

    wish = DesiredState.of(site, destroy=destroy, adopt=adopt)
    with _bound(site, context, wish.wanted, read_only=True) as bound:
        only = _rotating(site, rotation, bound) if rotation else frozenset()
        world = _seen(bound, wish.wanted, context.patience)
        bound.leave()
        found = make(site, wish, world, bound.kinds)
        return target.only(found, only, CLUSTERS) if only else found


def drift(site: Site, *, context: RunContext = THE_WORLD) -> Report:
    """What no longer agrees, and who moved it: the world, the file, or both. Read-only; `remember` keeps it
    for the next check.
    """
    from bfinfra.engine import checks
    from bfinfra.engine.drift import report, traced

    wish, memory = DesiredState.of(site), checks.recall(site.name)
    with _bound(site, context, wish.wanted, read_only=True) as bound:
        world = _seen(bound, wish.wanted, context.patience)
        bound.leave()
        found = make(site, wish, world, bound.kinds)
        absent = any(item.action is Action.CREATE for item in found.items)
        made = report(found, wish, world, bound.kinds, checks.stood(site.name, memory) if absent else ())
    settled, expired = judged(made.found, site.drift, dt.datetime.now(dt.UTC).date())
    made = replace(made, found=settled, warnings=(*made.warnings, *expired))
    if made.alarming:  # seldom: the servers were left while that was found out
        try:
            with _bound(site, context, read_only=True) as again:
                made = traced(made, world, again.kinds, context.patience)
        except BfinfraError as error:
            made = replace(
                made,
                warnings=(
                    *made.warnings,
                    Warned(Problem("who moved it is not known", why=str(error.problems[0]))),
                ),
            )
    return checks.since(made, memory)


def notify(site: Site, found: Report, *, context: RunContext = THE_WORLD) -> bool:
    """Tell the site's webhook what began and what ended; tried again after what passes. Whether there was
    anything to tell. RemoteError.
    """
    hook = site.drift.notify
    if hook is None or not (found.new or found.ended):
        return False
    from bfinfra.backends.transport import Transport
    from bfinfra.backends.webhook import post
    from bfinfra.render.drift import message

    seam = Transport(
        middleware=context.middleware, check=context.stop.check
    )  # never led into the sandbox: whom it tells is outside of any world
    try:
        context.patience.read(lambda: post(seam, hook, message(found)))
    finally:
        seam.close()
    return True


def remember(found: Report, *, told: bool = True) -> None:
    """Keep what a drift check saw, on this machine: the next one says what is new and what has ended; unless
    `told`, that again.
    """
    from bfinfra.engine import checks

    checks.remember(found, checks.recall(found.site), told=told)


def apply(  # noqa: PLR0913 - each is a switch of the command line
    site: Site,
    *,
    approve: Callable[[Plan], Allow | None] | None = None,
    saved: Saved | None = None,
    destroy: bool = False,
    adopt: frozenset[Key] = frozenset(),
    rotation: Rotation | None = None,
    options: Options | None = None,
    on_event: Sink = lambda _: None,
    context: RunContext = THE_WORLD,
) -> Outcome:
    """Plan, ask `approve` (None = go on with what needs no allowance; its answer None = leave it), guard,
    run.

    BfinfraError before the first write; how each resource fared is in the Outcome.
    """
    from bfinfra.engine import guard, journal, target
    from bfinfra.engine.apply import Apply, Options
    from bfinfra.kinds.cluster_locator import CLUSTERS

    wish = DesiredState.of(site, destroy=destroy, adopt=adopt)
    began = time.monotonic()
    with journal.lock(site.name), _bound(site, context, wish.wanted, read_only=False) as bound:
        only = _rotating(site, rotation, bound) if rotation else adopt
        world = _seen(bound, wish.wanted, context.patience)
        found = make(site, wish, world, bound.kinds)
        if only:
            found = (
                target.adopting(found, only, site, world, bound.kinds)
                if adopt
                else target.only(found, only, CLUSTERS)
            )
        if saved:
            saved.check(found)
        allow = approve(found) if approve else guard.Allow()
        if allow is None:
            return Outcome(found, {}, time.monotonic() - began, declined=True)
        guard.check(found, allow)
        log = journal.Journal(site.name)
        try:
            how = replace(options or Options(patience=context.patience), journal=log)
            run = Apply(found, wish, world, bound.kinds, how, on_event)
            endings = run.run()
        finally:
            log.close()
        return Outcome(
            found, endings, time.monotonic() - began, bound.seam.tally.requests, bound.seam.tally.writes
        )


def destroy(site: Site, *, approve: Callable[[Plan], Allow | None] | None = None, **how: Any) -> Outcome:
    """Apply of nothing: everything that this site made goes. What `apply` takes; where nobody is asked every
    deletion is allowed.
    """
    from bfinfra.engine.guard import Allow

    return apply(site, approve=approve or (lambda _: Allow(every_delete=True)), destroy=True, **how)


def rotate(site: Site, token: str = "", *, restart: bool = False, **how: Any) -> Outcome:
    """The apply of a token's Secrets, cut down to them, that also finds and replaces the copies which others
    made. What `apply` takes.

    `token`: which, where the site has several; `restart`: start workloads anew that hold the one before.
    SiteError where the site has none.
    """
    return apply(site, rotation=Rotation(token, restart), **how)


def privileges(site: Site, uses: Iterable[Use] = tuple(Use)) -> Rights:
    """What an account needs the right to, on vCenter and in each cluster, derived from what the site's kinds
    do. Asks nobody.
    """
    from bfinfra.engine.rights import needed

    return needed(site, {name: kind_named(name) for name in kind_names()}, uses)


def doctor(site: Site, *, context: RunContext = THE_WORLD) -> tuple[Finding, ...]:
    """What would stop an apply: names, connections, certificates, accounts, rights, versions, clocks, room,
    files. Only reads, side by side.
    """
    from bfinfra.doctor import examine

    with _ground(site, context) as ground:
        return examine(ground)


@contextlib.contextmanager
def _ground(site: Site, context: RunContext) -> Iterator[CheckContext]:
    from bfinfra.doctor.ground import CheckContext
    from bfinfra.engine import journal

    seam = context.seam(patience=HASTE)
    provide = provided(site, seam)
    try:
        yield CheckContext(
            site,
            privileges(site),
            seam,
            provide("Clusters"),
            provide("Images"),
            provide("VCenter") if site.vcenter else None,
            journal.folder(site.name),
            linux=lambda: provide("LinuxHosts"),
        )
    finally:
        provide("ExitStack").close()
        seam.close()


def health(site: Site, *, context: RunContext = THE_WORLD) -> list[Examined]:
    """What `flexdirect health` says on each machine of the site's flexdirect_hosts, asked side by side."""
    from bfinfra.backends.ansible import LinuxHosts
    from bfinfra.kinds.machine.flexdirect_host.health import examine

    hosts = LinuxHosts(seam := context.seam())
    try:
        return examine(site.resources, hosts)
    finally:
        hosts.close()
        seam.close()


def tokens(site: Site) -> dict[str, Token | Problem]:
    """The site's Bitfusion tokens as their sources hold them now, by name: servers, and when each ends; a
    Problem where one can't be read. Asks nobody.
    """
    from bfinfra.kinds.source.bitfusion_token import BitfusionToken

    wanted = {key.name: spec for key, spec in site.resources.items() if key.kind == "bitfusion_token"}
    seen = BitfusionToken().observe(wanted, {})
    unread = {
        name: Problem(
            f"bitfusion_token/{name} can't be read",
            site.place(Key("bitfusion_token", name), "source") or "",
            str(seen.facts[name]),
        )
        for name in wanted
    }
    return {name: seen.states.get(name) or unread[name] for name in wanted}


def addresses(site: Site, *, look: bool = True, context: RunContext = THE_WORLD) -> Mapping[Key, str]:
    """Where machines and clusters of the site answer: a name or address, with :port where it isn't the usual
    one. Read-only.

    As the world says, where nothing is known there as the file says; without `look` as the file says, and
    nobody is asked. What has no address is left out.
    """
    found = {key: address for key, spec in site.resources.items() if (address := spec.answers_at())}
    if look:
        with _bound(site, context, site.resources, read_only=True) as bound:
            states = _seen(bound, site.resources, context.patience).states
        found |= {
            key: address
            for key, state in states.items()
            if key in site.resources and (address := state.answers_at())
        }
    return found


def history(site: str) -> Iterator[dict[str, Any]]:
    """The journal's lines, oldest first."""
    from bfinfra.engine import journal

    return journal.read(site)


def kubeconfig(site: Site, address: str, *, context: RunContext = THE_WORLD) -> str:
    """A kubeconfig for one of the site's clusters, with a token of its own login."""
    from bfinfra.kinds.cluster_locator import CLUSTERS

    clusters = [key for key in site.resources if key.kind in CLUSTERS]
    key = next((key for key in clusters if address in (str(key), key.name)), None)
    if key is None:
        raise BfinfraError(
            Problem(
                f"{address} is no cluster of this site",
                next=nearest(address, (str(key) if "/" in address else key.name for key in clusters))
                or "it has none",
            )
        )
    with _bound(site, context, site.resources, read_only=True) as bound:
        states = _seen(bound, site.resources, context.patience).states
        endpoint = getattr(states.get(key), "endpoint", None)
        if endpoint is None:
            if missing := needed_references(site, {}, ()):
                raise SiteError(*missing)
            raise BfinfraError(
                Problem(
                    f"{key} has no Kubernetes API to reach", why="it isn't there yet, or it is no cluster"
                )
            )
        return str(bound.provide("Clusters").kubeconfig(endpoint))


def certificates(site: Site, *, context: RunContext = THE_WORLD) -> list[Shown]:
    """The certificate of each server that the site names, held against what the site says of it. Nothing is
    sent to any.
    """
    from bfinfra.backends.kubernetes import kubeconfig as kubeconfigs

    named = [(site.vcenter.server, "vcenter", site.vcenter.trust)] if site.vcenter else []
    for key, spec in site.resources.items():
        if reference := getattr(spec, "kubeconfig", None):
            access = kubeconfigs.read(reference, spec.context)
            named.append((access.url.removeprefix("https://").partition("/")[0], str(key), access.trust))
    return [certificate(server, trust, what=what, context=context) for server, what, trust in named]


def certificates_inside(site: Site, *, context: RunContext = THE_WORLD) -> list[Shown]:
    """The same of the supervisors that the site's namespaces are on, and of the Tanzu clusters there that
    run.

    vCenter is asked for the supervisors' addresses, and these, once they are trusted, for their clusters'.
    BfinfraError where vCenter can't be entered.
    """
    from bfinfra.doctor import doors

    if not any(key.kind == "supervisor_namespace" for key in site.resources):
        return []
    with _ground(site, context) as ground:
        if ground.login is not None:
            raise ground.login
        return [door.look(ground) for found in (doors.supervisors, doors.guests) for door in found(ground)]


def host_keys(site: Site, *, context: RunContext = THE_WORLD) -> list[HostKeys]:
    """The SSH host keys of each machine that the site names, held against what it pins. Nobody logs in."""
    machines = {key: spec for key, spec in site.resources.items() if key.kind == "linux_host"}
    if not machines:
        return []
    from bfinfra.backends.ansible import hostkeys

    seam = context.seam()
    return [hostkeys.look(seam, spec.machine(key.name), str(key)) for key, spec in machines.items()]


def certificate(
    server: str, trust: Trust | None = None, *, what: str = "", context: RunContext = THE_WORLD
) -> Shown:
    """The certificate of one server, host or host:port; held against this machine's store where no `trust` is
    given.
    """
    from bfinfra.backends.certificate import look

    return look(context.seam(), server, trust or Trust(), what=what)


def _rotating(site: Site, rotation: Rotation, bound: _Bound) -> frozenset[Key]:
    """Bind what rotates in the place of what only applies; the resources that it is about."""
    from bfinfra.kinds.cluster.token_secret import rotate

    keys = rotate.about(site, rotation.token)
    bound.kinds["token_secret"] = rotate.Rotation(bound.provide("Clusters"), site, restart=rotation.restart)
    return keys


@dataclass(frozen=True)
class _Bound:
    kinds: dict[str, Any]
    make: Callable[[Iterable[str]], dict[str, Any]]
    seam: Transport
    provide: Callable[[str], Any]
    leave: Callable[[], None]
    """All is seen: sessions may end while what was seen is worked on."""


def _seen(bound: _Bound, wanted: Mapping[Key, Any], patience: RetryPolicy) -> ObservedState:
    """The survey. Kinds that live in clusters, and that the site doesn't use, are asked (and imported) where
    a cluster was found only.
    """
    world = survey(bound.kinds, wanted, patience)
    if any(getattr(state, "endpoint", None) is not None for state in world.states.values()) and (
        late := bound.make(IN_CLUSTERS - bound.kinds.keys())
    ):
        bound.kinds.update(late)
        survey(late, wanted, patience, world)
    return world


def _asked(site: Site) -> list[str]:
    """The kinds that may have something to show, as far as a site tells; first those that have."""
    used = {key.kind for key in site.resources}
    idle = SOURCES - used
    if not used & IN_CLUSTERS:
        idle |= IN_CLUSTERS
    if "linux_host" not in used:
        idle |= {*kind_names("machine")}
    return sorted({*kind_names()} - idle, key=lambda name: (name not in used, name))


@contextlib.contextmanager
def _bound(
    site: Site, context: RunContext, wanted: Mapping[Key, Any] | None = None, *, read_only: bool
) -> Iterator[_Bound]:
    """Every kind with the backends that its constructor names; of `wanted` the survey begins with that.
    Sessions are closed whatever happens.
    """
    from bfinfra.backends.ahead import Ahead

    wants = site.resources if wanted is None else wanted
    away = shut(site, wants)
    site = replace(site, vcenter=None) if away else site
    if missing := needed_references(site, wants, None if wants else SOURCES):
        raise SiteError(*missing)
    seam = context.seam(read_only=read_only)
    provide = provided(site, seam)
    left = Ahead(lambda: provide("ExitStack").close(), "leave")

    def kinds(names: Iterable[str]) -> dict[str, Any]:
        found = {name: (away and behind(name, away)) or bound_to(name, site, provide) for name in names}
        return {name: begun(made, name, wanted) for name, made in found.items() if made is not None}

    try:
        if site.vcenter:
            provide("VCenter")  # it logs in while the kinds are imported
        yield _Bound(kinds(_asked(site)), kinds, seam, provide, left.begin)
    finally:
        left.take()
        seam.close()
