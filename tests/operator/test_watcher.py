"""Watchers on the sandbox's Kubernetes API: they share Sites, report what changes, and take over from each other."""

from __future__ import annotations

import base64
import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import QUICK, apply, made
from waiting import until

from bfinfra.app.context import RunContext
from bfinfra.backends.kubernetes import ClusterClient, kubeconfig
from bfinfra.backends.kubernetes.errors import NotServed, NotYetServed
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Busy, Rejected
from bfinfra.model.secret import Secret
from bfinfra.operator import lease as leases
from bfinfra.operator.desired import FINALIZER
from bfinfra.operator.manifest import API
from bfinfra.operator.replicas import LABELS
from bfinfra.operator.watcher import follower, replica
from bfinfra.operator.watcher.running import Feed, WatcherOptions
from bfinfra.operator.watcher.running import made as made_replica
from bfinfra.sandbox import Running

SOON = 30  # seconds within which what is waited for must be so
LASTS = 5.0  # seconds without a renewal after which a watcher counts as gone, where a test waits for that
SITE = {
    "site": "watched",
    "kubernetes_cluster": {"other": {"kubeconfig": {"file": "here/other.kubeconfig"}}},
    "namespace": {"team-a": {"cluster": "other", "labels": {"team": "one"}}},
}


@functools.cache
def definition() -> Any:
    text = (Path(__file__).parents[2] / "deploy/operator/crd.yaml").read_text()
    return yaml.load(text, yaml.CSafeLoader)


class Cluster:
    """The sandbox's cluster: Sites are in it, and their namespaces too."""

    def __init__(self, sandbox: Running, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.config = Path(sandbox.files) / "other.kubeconfig"
        self.transport = Transport(route=sandbox.lookup)
        secret = Secret("file", str(self.config))
        self.api = ClusterClient(self.transport, "test", lambda: kubeconfig.read(secret))
        self.stops: list[tuple[threading.Event, threading.Thread]] = []

    def begin(self) -> None:
        self.api.create(definition())
        until(self.serves_sites, why="Sites are not served")
        self.secret(self.config.read_text())

    def serves_sites(self) -> bool:
        with suppress(NotYetServed, NotServed):
            self.api.list(API, "Site", "default")
            return True
        return False

    def secret(self, text: str) -> None:
        data = {"config": base64.b64encode(text.encode()).decode()}
        meta = {"name": "poc", "namespace": "default"}
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data}
        if self.api.get("v1", "Secret", "poc", "default"):
            self.api.patch("v1", "Secret", "poc", {"data": data}, "default")
        else:
            self.api.create(made)

    def site(self, name: str = "poc", **spec: object) -> None:
        """As the operator leaves a Site that it has accepted."""
        kept = {"secretKeyRef": {"name": "poc", "key": "config"}}
        files = {"here/other.kubeconfig": kept}
        self.api.create(
            {
                "apiVersion": API,
                "kind": "Site",
                "metadata": {"name": name, "namespace": "default", "finalizers": [FINALIZER]},
                "spec": {"watch": True, "files": files, "site": SITE, **spec},
            }
        )

    def watch(self, name: str = "poc") -> dict[str, Any]:
        body = self.api.get(API, "Site", name, "default") or {}
        found: dict[str, Any] = (body.get("status") or {}).get("watch") or {}
        return found

    def change(self, **spec: object) -> None:
        self.api.patch(API, "Site", "poc", {"spec": spec}, "default")

    def stands(self) -> None:
        """As the operator writes it after a Job."""
        at = "2026-01-01T00:00:00Z"
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "AsWanted",
            "message": "",
            "observedGeneration": 1,
        }
        conditions = [{**ready, "lastTransitionTime": at}]
        self.api.patch_status(API, "Site", "poc", {"conditions": conditions}, "default")

    def label(self, team: str) -> None:
        self.api.patch("v1", "Namespace", "team-a", {"metadata": {"labels": {"team": team}}})

    def start(self, name: str, sites: int = 10, lasts: float = leases.LASTS) -> Callable[[], None]:
        """A watcher in threads of this process. Returns what stops it in order."""
        how = WatcherOptions(("127.0.0.1", 0), "default", sites, name=name, interval=3600)
        context = RunContext(sandbox=self.sandbox, retry=QUICK)
        found = made_replica(how, self.api, "default", self.folder / name, context)
        found.part = lambda: 0.0
        found.replicas.lasts = lasts
        feed, stop = Feed(self.api, "default", found), threading.Event()

        def run() -> None:
            hearing = threading.Thread(target=feed.run, args=(stop,))
            hearing.start()
            found.run(stop)
            found.lease.release()
            feed.cancel()
            hearing.join(SOON)

        thread = threading.Thread(target=run)
        thread.start()
        self.stops.append((stop, thread))

        def end() -> None:
            stop.set()
            thread.join(SOON)
            assert not thread.is_alive()

        return end

    def ghost(self, *, since: float, losses: int = 0) -> None:
        """The Site is followed by a watcher that was killed: its Lease is there, and nobody renews it."""
        meta = {"name": "ghost", "namespace": "default", "labels": dict(LABELS)}
        spec = {"holderIdentity": "ghost", "renewTime": "2026-01-01T00:00:00.000000Z"}
        self.api.create({"apiVersion": leases.API, "kind": leases.KIND, "metadata": meta, "spec": spec})
        at = replica.moment(time.time() - since)
        watch = {"replica": "ghost", "since": at, "following": True, "losses": losses}
        self.api.patch_status(API, "Site", "poc", {"watch": watch}, "default")


@pytest.fixture
def cluster(sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(replica, "EVERY", 0.2)
    made_one = Cluster(sandbox, tmp_path)
    made_one.begin()
    yield made_one
    for stop, thread in made_one.stops:
        stop.set()
        thread.join(SOON)
    made_one.transport.close()


def applied(cluster: Cluster) -> None:
    """The site as it is described, applied from a file."""
    folder = cluster.folder / "site/here"
    folder.mkdir(parents=True)
    (folder / "other.kubeconfig").write_text(cluster.config.read_text())
    path = cluster.folder / "site/site.yaml"
    path.write_text(yaml.safe_dump(SITE))
    assert made(apply(path, cluster.sandbox))


def test_what_changes_is_in_the_status_and_so_is_its_end(cluster: Cluster) -> None:
    cluster.site()
    cluster.start("one")
    until(lambda: cluster.watch().get("following"))
    first = cluster.watch()
    assert (first["replica"], first["differences"], first.get("drift")) == ("one", 1, None)
    applied(cluster)
    cluster.stands()
    until(lambda: cluster.watch()["differences"] == 0)
    assert cluster.watch()["changed"] > first["changed"]
    cluster.label("two")
    until(lambda: cluster.watch().get("drift"))
    (found,) = cluster.watch()["drift"]["found"]
    assert (found["address"], found["field"], found["cause"]) == ("namespace/team-a", "labels.team", "drift")
    cluster.label("one")
    until(lambda: not cluster.watch().get("drift"))


def test_one_that_ends_hands_its_sites_over_and_the_next_says_how_long_nobody_followed(
    cluster: Cluster,
) -> None:
    applied(cluster)
    cluster.site()
    end = cluster.start("one")
    until(lambda: cluster.watch().get("following"))
    cluster.start("two")
    end()
    cluster.label("two")  # while nobody follows
    until(lambda: cluster.watch()["replica"] == "two" and cluster.watch()["following"])
    until(lambda: cluster.watch().get("drift"))
    found = cluster.watch()
    assert found["why"] == "its watcher ended"
    assert 0 < found["blindSeconds"] < SOON
    assert found["losses"] == 0


@pytest.mark.thorough
def test_a_watcher_that_is_killed_is_followed_within_its_leases_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.site()
    cluster.ghost(since=100)
    began = time.monotonic()
    cluster.start("two", lasts=LASTS)
    until(lambda: cluster.watch()["replica"] == "two" and cluster.watch()["following"])
    took = time.monotonic() - began
    found = cluster.watch()
    assert LASTS <= took < LASTS + 10
    assert "ghost was lost" in found["why"]
    assert LASTS <= found["blindSeconds"] < took + replica.EVERY + 1
    assert found["losses"] == 1


@pytest.mark.thorough
def test_a_site_that_brings_its_watchers_down_waits_ever_longer(cluster: Cluster) -> None:
    cluster.site()
    cluster.ghost(since=100, losses=2)
    cluster.start("two", lasts=LASTS)
    time.sleep(LASTS + 3)
    assert cluster.watch()["replica"] == "ghost"


def test_no_more_sites_than_a_watcher_may_have_and_the_next_takes_the_rest(cluster: Cluster) -> None:
    for number in range(4):
        site = {**SITE, "site": f"s{number}", "namespace": {f"n{number}": {"cluster": "other"}}}
        cluster.site(f"s{number}", site=site)
    cluster.start("one", 3)

    def counts() -> list[str]:
        return sorted(cluster.watch(f"s{number}").get("replica", "") for number in range(4))

    until(lambda: counts() == ["", "one", "one", "one"])
    cluster.start("two", 3)
    until(lambda: counts() == ["one", "one", "one", "two"])


def test_a_secret_that_changes_is_read_again_and_one_that_is_missing_is_said(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "REREAD", 0.3)
    applied(cluster)
    cluster.site(files={"here/other.kubeconfig": {"secretKeyRef": {"name": "poc", "key": "other"}}})
    cluster.start("one")
    until(lambda: "no key other" in cluster.watch().get("why", ""))
    assert not cluster.watch()["following"]
    cluster.change(files={"here/other.kubeconfig": {"secretKeyRef": {"name": "poc", "key": "config"}}})
    until(lambda: cluster.watch()["following"])
    cluster.secret(cluster.config.read_text() + "# rotated\n")
    until(lambda: "Secrets or ConfigMaps" in cluster.watch()["why"])
    until(lambda: cluster.watch()["following"])
    secret = yaml.safe_load(cluster.config.read_text())["users"][0]["user"]
    body = str(cluster.api.get(API, "Site", "poc", "default"))
    assert not any(str(value) in body for value in secret.values())


def test_sites_that_lead_elsewhere_are_refused_in_words_and_the_others_followed(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each names by a way of its own what is not its: a file of the machine, a variable of Python's, the
    watcher's own password.
    """
    monkeypatch.setenv("GOVC_PASSWORD", "the watcher's")
    (tmp_path / "token").write_text("the watcher's")
    cluster.site()
    theirs = {"kubernetes_cluster": {"other": {"kubeconfig": {"file": str(tmp_path / "token")}}}}
    with pytest.raises(Rejected, match=r"spec\.site\.kubernetes_cluster\.other\.kubeconfig\.file"):
        cluster.site("s-file", site={**SITE, "site": "s-file", **theirs})
    env = {"PYTHONPATH": {"secretKeyRef": {"name": "poc", "key": "config"}}}
    cluster.site("s-env", env=env, site={**SITE, "site": "s-env"})
    vcenter = {"server": "attacker.test", "username": "x"}
    given = {"site": "s-vcenter", "vcenter": vcenter, "supervisor_namespace": {"a": {"cluster": "c"}}}
    cluster.site("s-vcenter", site=given)
    cluster.start("one")

    def why(name: str) -> str:
        return str(until(lambda: cluster.watch(name).get("why", ""), why=name))

    assert "spec.env.PYTHONPATH: no {env: PYTHONPATH} is in spec.site" in why("s-env")
    assert "no password for vCenter" in why("s-vcenter")
    assert not any(cluster.watch(name)["following"] for name in ("s-env", "s-vcenter"))
    until(lambda: cluster.watch().get("following"))


@pytest.mark.parametrize("change", [{"watch": False}, {"suspend": True}], ids=["unwatched", "suspended"])
def test_a_site_that_is_not_to_be_watched_is_given_up(cluster: Cluster, change: dict[str, object]) -> None:
    cluster.site()
    cluster.start("one")
    until(lambda: cluster.watch().get("following"))
    cluster.change(**change)
    until(lambda: cluster.watch()["replica"] == "")
    until(lambda: not any(thread.name == "site poc" for thread in threading.enumerate()))
    cluster.change(watch=True, suspend=False)
    until(lambda: cluster.watch()["following"])


def meanwhile(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, replica: str, change: Callable[[], object]
) -> None:
    """Change the Site when its watcher has just written that `replica` follows it, before it gets the answer."""
    write, changed = cluster.api.patch_status_of, list[object]()

    def slowly(thing: Any, status: Any) -> Any:
        answer = write(thing, status)
        if status["watch"]["replica"] == replica and not changed:
            changed.append(change())
            time.sleep(1)  # until the watcher has the event
        return answer

    monkeypatch.setattr(cluster.api, "patch_status_of", slowly)


def test_a_site_that_is_to_be_watched_again_while_it_is_given_up_is_followed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.site()
    cluster.start("one")
    until(lambda: cluster.watch().get("following"))
    meanwhile(cluster, monkeypatch, "", lambda: cluster.change(watch=True))
    cluster.change(watch=False)
    until(lambda: not cluster.watch()["following"])
    until(lambda: cluster.watch()["following"])


def test_a_site_that_is_not_to_be_watched_any_more_while_it_is_taken_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.site()
    meanwhile(cluster, monkeypatch, "one", lambda: cluster.change(watch=False))
    cluster.start("one")
    until(lambda: cluster.watch().get("replica") == "one")
    until(lambda: cluster.watch()["replica"] == "")


def test_a_site_that_changes_while_it_is_taken_is_followed_as_it_is_now(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.site()
    meanwhile(cluster, monkeypatch, "one", lambda: cluster.change(interval="2h"))
    cluster.start("one")
    until(lambda: cluster.watch().get("observedGeneration") == 2)


def test_a_site_whose_status_can_not_be_written_is_given_up_later(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.site()
    cluster.start("one")
    until(lambda: cluster.watch().get("following"))
    refused, write = list[object](), cluster.api.patch_status_of

    def busy(thing: Any, status: Any) -> Any:
        if len(refused) < 2:
            refused.append(status)
            raise Busy("too many requests")
        return write(thing, status)

    monkeypatch.setattr(replica, "AGAIN", 0.1)
    monkeypatch.setattr(cluster.api, "patch_status_of", busy)
    cluster.change(watch=False)
    until(lambda: cluster.watch()["replica"] == "")
    assert len(refused) == 2


def test_a_site_that_is_taken_while_its_watcher_ends_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, over, write = threading.Event(), threading.Event(), cluster.api.patch_status_of

    def slowly(*words: Any) -> Any:
        answer = write(*words)
        taken.set()
        assert over.wait(SOON)
        return answer

    monkeypatch.setattr(cluster.api, "patch_status_of", slowly)
    cluster.site()
    end = cluster.start("one")
    assert taken.wait(SOON)
    cluster.stops[-1][0].set()
    time.sleep(1)  # until it does nothing new
    over.set()
    end()
    assert cluster.watch()["replica"] == ""
    assert not any(thread.name == "site poc" for thread in threading.enumerate())


def test_a_deleted_site_is_followed_no_more(cluster: Cluster) -> None:
    cluster.site()
    cluster.start("one")
    until(lambda: cluster.watch().get("following"))
    cluster.api.delete(API, "Site", "poc", "default")
    until(lambda: not any(thread.name == "site poc" for thread in threading.enumerate()))


def test_a_defect_with_one_site_leaves_the_others_alone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = follower.watch

    def broken(site: Any, *words: Any, **more: Any) -> Any:
        if site.name == "bad":
            raise ZeroDivisionError
        return whole(site, *words, **more)

    monkeypatch.setattr(follower, "watch", broken)
    cluster.site("bad", site={**SITE, "site": "bad", "namespace": {"b": {"cluster": "other"}}})
    cluster.site()
    cluster.start("one")
    until(lambda: cluster.watch().get("following"))
    until(lambda: "ZeroDivisionError" in cluster.watch("bad").get("why", ""))
    assert not cluster.watch("bad")["following"]
