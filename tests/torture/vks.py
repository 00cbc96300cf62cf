"""A vks_cluster on real Cluster API, made, scaled, upgraded over two minor versions and deleted, with kills at each
write of each.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from peers import test_vks
from peers.found import Peers
from peers.site_files import all_are
from torture import striking
from torture.counting import Count, Effort

from bfinfra.backends.transport import Middleware

LINE = "`specs/peers/vks.yaml` on Cluster API, killed before and after each write"
PLACES = ("before", "after")
ACTS = ("made", "scaled", "upgraded", "deleted")
KINDS = "cluster,machinedeployment,machine,devmachine"


def acted(site: test_vks.Site, act: str) -> Any:
    """Make it, scale it, upgrade it, delete it; how all ended. Each act keeps what those before it wrote."""
    if act in ACTS[1:]:
        site.cluster["workers"]["cpu"]["count"] = "2"
    if act in ACTS[2:]:
        site.cluster["version"] = "v1.35"
    return site.run(destroy=act == "deleted", deadline=test_vks.LONG)


def killed(where: Path, peers: Peers, own: str, act: str, filling: Middleware) -> None:
    """In a process of its own."""
    acted(test_vks.Site(where, peers, own, filling), act)


def count(effort: Effort, peers: Peers) -> Count:
    """Each kill in a cluster that the acts before it made, and after it the same act again, without a kill."""
    found = Count(LINE)
    with test_vks.running(peers) as cluster_api:
        many = dict.fromkeys(ACTS, 1)
        with test_vks.placed(cluster_api, folder(effort)) as site:
            for act in ACTS:
                before = site.transport.tally.writes
                all_are(acted(site, act), "done", "kept")
                many[act] = site.transport.tally.writes - before
        found.figures["writes"] = sum(many.values())
        for nth in range(1, max(many.values()) + 1):
            for when in effort.some(PLACES, 1):
                _life(found, cluster_api, effort, [act for act in ACTS if nth <= many[act]], (nth, when))
    return found


def _life(found: Count, peers: Peers, effort: Effort, acts: list[str], kill: tuple[int, str]) -> None:
    """One cluster; the acts with a kill are those named."""
    nth, when = kill
    with test_vks.placed(peers, folder(effort)) as site:
        for act in ACTS:
            if act not in acts:
                all_are(acted(site, act), "done", "kept")
                continue
            with found.trial(f"{act}, {when} write {nth}"):
                own = site.space.rpartition("-")[2]
                striking.run_to_its_kill(killed, folder(effort), peers, own, act, nth=nth, when=when)
                before = site.transport.tally.writes
                all_are(acted(site, act), "done", "kept")
                found.add("writes left to the next run", site.transport.tally.writes - before)
                agreed(site, act)


def agreed(site: test_vks.Site, act: str) -> None:
    """One cluster with its nodes and nothing to do, or nothing at all."""
    there = site.peers.kubectl("get", KINDS, "-n", site.space, "-o", "name").split()
    if act == "deleted":
        assert there == [], there
        return
    clusters = [each for each in there if each.startswith("cluster.cluster.x-k8s.io/")]
    assert clusters == ["cluster.cluster.x-k8s.io/ml-01"], there
    assert len(site.nodes()) == (2 if act == "made" else 3)
    assert act != "upgraded" or set(site.nodes().values()) == {"v1.35.0+vmware.1"}
    assert site.changes() == {}
    writes = site.transport.tally.writes
    all_are(acted(site, act), "kept")
    assert site.transport.tally.writes == writes


def folder(effort: Effort) -> Path:
    return Path(mkdtemp(dir=effort.folder))
