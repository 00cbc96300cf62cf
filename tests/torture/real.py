"""The trials of a watch on real servers: vcsim, and a kube-apiserver of their own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from heard import NEVER, Heard, following
from peers.found import Peers
from peers.site_files import RETRY, SiteFile
from torture import hands, on_cluster, on_vcsim
from torture.counting import Count, Effort
from torture.on_vcsim import Collector, Vcenter
from torture.own_cluster import Cluster, own_cluster
from torture.watching import SmallPages, agree, elsewhere, sessions_ended
from torture.wire import Wire, wire

import bfinfra
from bfinfra.backends.transport import Middleware
from bfinfra.model.drift import Report
from bfinfra.sandbox.factories.ova import make_ova

ON_VCSIM = "changes by govc and pyVmomi, with interruptions, on vcsim"
ON_CLUSTER = "changes by kubectl and HTTP, with interruptions, on kube-apiserver"
CHANGES, ROUNDS, SHARE = 20, 10, 2  # of a round; of one server; of a share
BROKEN_OFF = (0, 200, 2000)  # bytes of answers
AWAY = (0.2, 2.0)  # seconds
LATEST = 90.0  # seconds until the watch must agree, on a machine that does much else
CHECKS = 3  # at most: a connection may still be cut when the first begins
OFTEN = 0.1  # of the changes are followed by an interruption


@contextmanager
def watched(path: Path, *middleware: Middleware) -> Iterator[Heard]:
    """A watch of the site, after its first report; nothing is read at intervals."""
    context = bfinfra.RunContext(retry=RETRY, middleware=middleware)
    with following(bfinfra.load(path), context, NEVER) as heard:
        heard.next()
        yield heard


def on_vcsim_(count: Count, effort: Effort, turn: int) -> None:
    """In the middle another vcsim, which is empty, takes the place of the first."""
    folder = effort.folder / f"vcsim-{turn}"
    folder.mkdir(parents=True)
    make_ova(folder / "source.ova")
    with wire(("127.0.0.1", 0)) as through, on_vcsim.vcenter(_peers(effort), folder, through) as vcenter:
        site = on_vcsim.site_of(vcenter, folder, folder / "source.ova")
        site.load()
        vcenter.apply(site)
        _turn_of_vcsim(count, effort, turn, vcenter, site)


def _turn_of_vcsim(count: Count, effort: Effort, turn: int, vcenter: Vcenter, site: SiteFile) -> None:
    chance, collectors = effort.chance(f"{ON_VCSIM} {turn}"), list[Collector]()

    def collector(inner: object) -> Collector:
        collectors.append(Collector(inner))  # type: ignore[arg-type]  # what the transport wraps
        return collectors[-1]

    pages = chance.choice((0, 1, 3))
    small = (lambda inner: SmallPages(inner, pages),) if pages else ()
    rounds = list(range(effort.number(ROUNDS, SHARE)))
    again = len(rounds) // 2
    while rounds:
        with watched(site.path, *small, collector) as heard:
            while rounds:
                with count.trial(f"seed {effort.seed}, {turn}, round {rounds.pop(0)}"):
                    _changed_on_vcsim(count, vcenter, chance, collectors)
                    agree(heard, elsewhere(vcenter.folder, lambda: read(site.drift)), LATEST)
                if len(rounds) == again:
                    break
            if len(rounds) == again and rounds:
                with count.trial(f"seed {effort.seed}, {turn}, an empty one"):
                    vcenter.restart()
                    count.add("started again, empty", 1)
                    agree(heard, elsewhere(vcenter.folder, lambda: read(site.drift)), LATEST)
            summed(count, heard)
        collectors.clear()
        if rounds:  # vcsim tells no view of a pool that is made, so another watch follows what is made now
            vcenter.prepare()
            vcenter.apply(site)


def _changed_on_vcsim(
    count: Count, vcenter: Vcenter, chance: random.Random, collectors: list[Collector]
) -> None:
    with vcenter.session() as si:
        by_hand = hands.Hands(chance, si, govc=vcenter.peers.govc, host=on_vcsim.HOST)

        def sessions() -> None:
            sessions_ended(si)

        def collector() -> None:
            for each in collectors:
                each.destroy()

        both = {
            "sessions ended": sessions,
            "collectors destroyed": collector,
            **_of_wire(vcenter.wire, chance),
        }
        _changed(count, by_hand, on_vcsim.CHANGES, both)


def on_cluster_(count: Count, effort: Effort, turn: int) -> None:
    """After every second round, the site is applied."""
    with own_cluster(_peers(effort), effort.folder) as cluster, wire(cluster.address) as through:
        folder = effort.folder / f"cluster-{turn}"
        folder.mkdir(parents=True)
        host, port = through.address
        config = cluster.config
        config["clusters"][0]["cluster"]["server"] = f"https://{host}:{port}"
        path = on_cluster.written(folder, config)
        on_cluster.applied(path)
        chance, rounds = effort.chance(f"{ON_CLUSTER} {turn}"), list(range(effort.number(ROUNDS, SHARE)))
        while rounds:
            with watched(path) as heard:
                while rounds:
                    number = rounds.pop(0)
                    with count.trial(f"seed {effort.seed}, {turn}, round {number}"):
                        _changed_in_cluster(count, cluster, through, chance)
                        cluster.settle()
                        agree(heard, elsewhere(folder, lambda: read(lambda: on_cluster.drift(path))), LATEST)
                    if number % 2 and not mended(cluster, path):
                        break
                summed(count, heard)


def _changed_in_cluster(count: Count, cluster: Cluster, through: Wire, chance: random.Random) -> None:
    by_hand = hands.Hands(chance, kube=cluster.kube(), kubectl=cluster.kubectl)

    def passed_over() -> None:
        """More happens while nobody is let in than kube-apiserver remembers of a type."""
        through.shut = True
        through.cut()
        try:
            by_hand.change(on_cluster.CHANGES)
            cluster.restart()
            cluster.compact()
        finally:
            through.shut = False

    ways = {"kube-apiserver killed, etcd compacted": passed_over, "etcd compacted": cluster.compact}
    _changed(count, by_hand, on_cluster.CHANGES, {**ways, **_of_wire(through, chance)})
    through.left = None


def mended(cluster: Cluster, path: Path) -> bool:
    """The site is applied; where somebody's objects have its names, these go before, and False is returned."""
    try:
        on_cluster.applied(path)
    except (AssertionError, bfinfra.BfinfraError):
        on_cluster.cleared(cluster)
        on_cluster.applied(path)
        return False
    return True


def _of_wire(through: Wire, chance: random.Random) -> dict[str, Callable[[], None]]:
    def broken_off() -> None:
        through.left = chance.choice(BROKEN_OFF)

    def away() -> None:
        through.shut = True
        through.cut()
        time.sleep(chance.choice(AWAY))
        through.shut = False

    return {"connections reset": through.cut, "answers broken off": broken_off, "nobody let in": away}


def _changed(
    count: Count, by_hand: hands.Hands, some: hands.Changes, interruptions: dict[str, Callable[[], None]]
) -> None:
    """One round."""
    for _ in range(CHANGES):
        by_hand.change(some)
        if by_hand.chance.random() < OFTEN:
            name = by_hand.chance.choice(sorted(interruptions))
            interruptions[name]()
            count.add(name, 1)
    count.add("changes", sum(by_hand.done.values()))
    count.add("refused", sum(by_hand.refused.values()))


def read(check: Callable[[], Report]) -> Report:
    """What a check says that could read everything; after some, what the last one says."""
    for _ in range(CHECKS):
        found = check()
        if not found.unreadable:
            break
    return found


def summed(count: Count, heard: Heard) -> None:
    """What a watch did."""
    count.add("reports", len(heard.sights))
    count.add("interruptions", len(heard.interruptions))
    count.add("seconds not followed", round(heard.blind, 1))


def _peers(effort: Effort) -> Peers:
    assert effort.peers is not None
    return effort.peers
