"""The same on live peers: kube-apiserver and vcsim.

These trials need the servers of `script/peers up`. SIGKILL comes from inside the process, before a write is
sent or after its answer came. On kube-apiserver, kubectl counts the objects with the site's label. On vcsim,
a new one for each trial, govc counts virtual machines. The plan must be empty in the end. Two applies at once
are two processes with two state folders. A Tanzu cluster is created, scaled and deleted on kube-apiserver
with the supervisor's resource definition and a small controller. It is killed at each write, and the next run
must finish: one cluster, or none. The same on real Cluster API, where a `vks_cluster` is upgraded over two minor
versions, too. A rendering with hooks is killed at each write, those of its hooks too, when it is
applied and when it is removed.
vcsim accepts two machines of one name (docs/explanation/flaws.md), so two
applies at once are tried on kube-apiserver only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from peers import sites, test_tanzu
from peers.conftest import own_vcsim, vcsim_site
from peers.found import Peers
from peers.site_files import SiteFile, all_are
from peers.sites import names
from peers.test_vcsim import applied
from torture import hooked, striking, vks
from torture.counting import Count, Effort, spread

from bfinfra.backends.transport import Middleware
from bfinfra.sandbox.factories.ova import make_ova

PLACES = ("before", "after")
ROUNDS = 10
KUBERNETES = "`specs/peers/kubernetes.yaml` on kube-apiserver, killed before and after each write"
VCSIM = "`specs/peers/vcsim.yaml` on vcsim, killed before and after each write"
TANZU, ACTS = (
    "`specs/peers/tanzu.yaml` on kube-apiserver, killed before and after each write",
    ("made", "scaled", "deleted"),
)
HOOKED = "`specs/peers/manifests.yaml` with hooks on kube-apiserver, killed before and after each write"
REMOVED = "`specs/peers/manifests.yaml`, its removal with hooks on kube-apiserver killed before and after each write"
Trial = tuple[int, str, tuple[str, ...]]
"""The nth write, before or after it, and what an undisturbed apply leaves there."""


def counts(effort: Effort) -> Iterator[Count]:
    if effort.peers is None:
        return
    with sites.in_kubernetes(effort.peers, folder(effort)) as site:
        outcome = site.apply()
        all_are(outcome, "done", "kept")
        whole = tuple(bare(effort.peers, site))
    with own_vcsim(effort.peers) as vcsim:
        writes = vcsim_site(vcsim.peers, folder(effort), an_ova(effort)).apply(deadline=1).writes
    for line, work, many in ((KUBERNETES, in_kubernetes, outcome.writes), (VCSIM, on_vcsim, writes)):
        trials = effort.some([(nth, when, whole) for nth in range(1, many + 1) for when in PLACES], 2)
        yield from spread(work, trials, effort) if effort.wants(line) else ()
    if effort.wants(TANZU):
        yield tanzu(effort)
    # a trial takes a minute and more, as Cluster API makes machines one after the other
    if effort.wants(vks.LINE) and (effort.only or not effort.share):
        yield vks.count(effort, effort.peers)
    # beside a share run tests of charts, and webhooks of one of them hold the Jobs of the whole cluster
    if effort.wants(HOOKED) and (effort.only or not effort.share):
        yield with_hooks(effort)
    if effort.wants(REMOVED) and (effort.only or not effort.share):
        yield hooks_of_removal(effort)
    both = Count("`specs/peers/kubernetes.yaml` on kube-apiserver, two applies at once")
    for turn in range(effort.number(ROUNDS, 1) if effort.wants(both.what) else 0):
        with both.trial(f"round {turn}"), sites.in_kubernetes(effort.peers, folder(effort)) as site:
            site.load()
            running = [striking.start(site.path, site.folder / machine) for machine in ("a", "b")]
            for each in running:
                each.join(120)
            assert [each.exitcode for each in running] == [0, 0]
            agreed(effort.peers, site, whole)
    if both.tried:
        yield both


def in_kubernetes(trials: list[Trial], effort: Effort) -> list[Count]:
    count, peers = Count(KUBERNETES), found(effort)
    for nth, when, whole in trials:
        with count.trial(f"{when} write {nth}"), sites.in_kubernetes(peers, folder(effort)) as site:
            site.load()
            striking.killed(site.path, site.folder / "killed", nth, when)
            all_are(site.apply(), "done", "kept")
            agreed(peers, site, whole)
    return [count]


def on_vcsim(trials: list[Trial], effort: Effort) -> list[Count]:
    count, peers = Count(VCSIM), found(effort)
    for nth, when, _ in trials:
        with count.trial(f"{when} write {nth}"), own_vcsim(peers) as vcsim:
            site = vcsim_site(vcsim.peers, folder(effort), an_ova(effort))
            site.load()
            striking.killed(site.path, site.folder / "killed", nth, when, deadline=1)
            applied(site, vcsim)
            assert len(vcsim.govc("find", "/", "-type", "m").split()) == 1
            assert site.changes() == {}
            left = [line for line in vcsim.govc("session.ls").splitlines() if "bfinfra" in line]
            assert not left, left
    return [count]


def tanzu(effort: Effort) -> Count:
    """Each trial has a namespace and a controller of its own."""
    count, peers = Count(TANZU), found(effort)
    test_tanzu.define(peers)
    with test_tanzu.placed(peers, folder(effort)) as site, test_tanzu.controlled(site, peers):
        many = [site.transport.tally.writes for act in range(len(ACTS)) if acted(site, act)]
    each = [
        (act, nth, when)
        for act, before in enumerate([0, *many[:-1]])
        for nth in range(1, many[act] - before + 1)
        for when in PLACES
    ]
    for act, nth, when in effort.some(each, 2):
        with (
            count.trial(f"{ACTS[act]}, {when} write {nth}"),
            test_tanzu.placed(peers, folder(effort)) as site,
            test_tanzu.controlled(site, peers),
        ):
            for before in range(act):
                all_are(acted(site, before), "done", "kept")
            striking.run_to_its_kill(
                killed_tanzu, folder(effort), peers, site.space.rpartition("-")[2], act, nth=nth, when=when
            )
            writes = site.transport.tally.writes
            all_are(acted(site, act), "done", "kept")
            count.add("writes left to the next run", site.transport.tally.writes - writes)
            there = peers.kubectl("get", "tkc", "-n", site.space, "-o", "name").split()
            assert len(there) == (0 if ACTS[act] == "deleted" else 1), there
            assert ACTS[act] == "deleted" or site.changes() == {}
    return count


def with_hooks(effort: Effort) -> Count:
    """Definition, objects and hooks of a rendering; each trial ends with a destroy that leaves nothing."""
    count, peers = Count(HOOKED), found(effort)
    with hooked.placed(peers, folder(effort)) as site:
        first = site.apply(deadline=120)
        all_are(first, "done", "kept")
        whole = hooked.there(peers, site)
    count.figures["writes"] = first.writes
    each = [(nth, when) for nth in range(1, first.writes + 1) for when in PLACES]
    for nth, when in effort.some(each, 2):
        with count.trial(f"{when} write {nth}"), hooked.placed(peers, folder(effort)) as site:
            site.load()
            striking.killed(site.path, site.folder / "killed", nth, when, deadline=120)
            all_are(site.apply(deadline=120), "done", "kept")
            assert hooked.there(peers, site) == whole
            assert site.changes() == {}
            assert site.apply().writes == 0
    return count


def hooks_of_removal(effort: Effort) -> Count:
    """The rendering leaves the file; after each kill, the next run takes all of it away."""
    count, peers = Count(REMOVED), found(effort)
    with hooked.placed(peers, folder(effort)) as site:
        all_are(site.apply(deadline=120), "done", "kept")
        del site.given["manifests"]
        gone = site.apply(deadline=120)
        all_are(gone, "done", "deleted", "kept")
        left = hooked.there(peers, site)
    count.figures["writes"] = gone.writes
    each = [(nth, when) for nth in range(1, gone.writes + 1) for when in PLACES]
    for nth, when in effort.some(each, 2):
        with count.trial(f"{when} write {nth}"), hooked.placed(peers, folder(effort)) as site:
            all_are(site.apply(deadline=120), "done", "kept")
            del site.given["manifests"]
            striking.run_to_its_kill(hooked.removed, site.folder, site.given, nth=nth, when=when)
            all_are(site.apply(deadline=120), "done", "deleted", "kept")
            assert hooked.there(peers, site) == left
            assert site.apply().writes == 0
    return count


def acted(site: test_tanzu.Site, act: int) -> Any:
    """Make it, scale it, delete it; how all ended."""
    if ACTS[act] == "scaled":
        site.cluster["workers"]["workers"]["count"] = "3"
    return site.run(destroy=ACTS[act] == "deleted")


def killed_tanzu(where: Path, peers: Peers, own: str, act: int, filling: Middleware) -> None:
    """In a process of its own."""
    acted(test_tanzu.Site(where, peers, own, filling), act)


def found(effort: Effort) -> Peers:
    """The peers, for a process of its own."""
    assert effort.peers is not None
    return effort.peers


def an_ova(effort: Effort) -> Path:
    path = effort.folder / "bitfusion-server.ova"
    if not path.exists():
        make_ova(path)
    return path


def agreed(peers: Peers, site: SiteFile, whole: tuple[str, ...]) -> None:
    assert bare(peers, site) == list(whole)
    assert site.changes() == {}
    assert site.apply().writes == 0


def bare(peers: Peers, site: SiteFile) -> list[str]:
    """What is there, without the site's own ending."""
    own = site.given["site"].rpartition("-")[2]
    return sorted(name.replace(f"-{own}", "") for name in names(peers, site))


def folder(effort: Effort) -> Path:
    return Path(mkdtemp(dir=effort.folder))
