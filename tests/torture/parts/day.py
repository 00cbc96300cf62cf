"""A watch does not grow in a day

What happens in a day happens in an hour here, to two processes of `bfinfra watch`: one follows the site of
the watch's other trials on the sandbox, one what of it is in a cluster, on a kube-apiserver of the trial's
own. In each of 24 parts come 120 changes by hand; before each 40 of them `bfinfra apply` makes what is
missing, and twice all sessions are ended. By turns vCenter starts again with another certificate or another password; by turns
kube-apiserver gets another certificate, or the token by which it is entered is replaced and the one before
is withdrawn. What no server reports is read 1,440 times. After each part, the last report must be what a
fresh `bfinfra drift` says. Every few seconds a sample is taken of what the process holds. In the last quarter
its median must not be above that of the first: memory by more than 5 %, threads, descriptors, sockets and
vCenter's sessions by more than one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import yaml
from kinds.lifecycle import SPECS, apply, drift, endings, made
from torture import hands, on_cluster
from torture.counting import Count, Effort, spread
from torture.own_cluster import Cluster, own_cluster
from torture.sampling import Numbers, Samples, held, sampled
from torture.watcher import Watcher, watcher
from torture.watching import sessions_ended

from bfinfra import worlds
from bfinfra.model.drift import Report
from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

SITE = Path(__file__).parents[1] / "watched.yaml"
ON_SANDBOX, ON_CLUSTER = "a day in an hour, on the sandbox", "a day in an hour, on kube-apiserver"
DAY, SHARE, PARTS, THIRDS, CHANGES, POLLS, LOOKS = 3600, 20, 24, 3, 40, 1440, 720
MEMORY, OTHERS = 1.05, 1  # how much more it may be at the end: a ratio, and a number
LASTING = (hands.mark, hands.clone, hands.token_unmarked)
"""Changes after which an apply refuses the object that somebody has: the day could not go on."""
NAMES = (hands.renamed_machine, hands.renamed_pool, hands.renamed_group)
"""The same: an object of the site under another name is found by its mark, but not all of them can be."""


class Where(Protocol):
    """Where a day is spent. `pid`: of the watch."""

    changes: hands.Changes
    pid: int

    def mend(self) -> None:
        """Apply the site. Raises AssertionError."""

    def renew(self, part: int) -> None:
        """A certificate, or what one enters with."""

    def hands(self, chance: random.Random) -> Any:
        """Whoever changes something, as a context."""

    def drift(self) -> Report:
        """What a fresh check says."""

    def look(self) -> Numbers:
        """What the watch holds."""


def counts(effort: Effort) -> Iterator[Count]:
    lines = [each for each in (ON_SANDBOX, ON_CLUSTER) if effort.wants(each)]
    if effort.share and not effort.only:
        lines = []  # in a minute, what a watch takes at its start is most of what it takes
    if effort.peers is None:
        lines = [each for each in lines if each is ON_SANDBOX]
    yield from spread(days, lines, effort, processes=2, shares=len(lines)) if lines else ()


def days(lines: list[str], effort: Effort) -> list[Count]:
    found = []
    for line in lines:
        count = Count(line)
        with count.uncounted():
            (on_sandbox if line == ON_SANDBOX else on_cluster_)(count, effort)
        found.append(count)
    return found


def on_sandbox(count: Count, effort: Effort) -> None:
    place = Sandbox(effort.folder)
    try:
        place.mend()
        interval = effort.seconds(DAY, SHARE) / POLLS
        words = ("--world", str(place.world), "--interval", f"{max(1, round(interval))}s")
        with watcher(place.site, effort.folder / "watch", *words) as seen:
            spent(count, place, seen, effort)
    finally:
        stop(place.state)


def on_cluster_(count: Count, effort: Effort) -> None:
    assert effort.peers is not None
    with own_cluster(effort.peers, effort.folder) as cluster:
        place = InCluster(effort.folder, cluster)
        place.mend()
        with watcher(place.site, effort.folder / "watch") as seen:
            spent(count, place, seen, effort)


def spent(count: Count, place: Where, seen: Watcher, effort: Effort) -> None:
    """The whole day."""
    whole = effort.seconds(DAY, SHARE)
    place.pid = seen.process.pid
    parts, began = min(PARTS, max(2, whole // 10)), time.monotonic()
    with sampled(place.look, max(0.2, whole / LOOKS)) as samples:
        for part in range(parts):
            with count.trial(f"seed {effort.seed}, part {part}"):
                place.renew(part)
                for third in range(part * THIRDS, (part + 1) * THIRDS):
                    place.mend()
                    changed(count, place, effort, third, began + (third + 1) * whole / parts / THIRDS)
                seen.agrees(place.drift())
    count.figures |= {"reports": seen.reports, "interruptions": len(seen.gaps)}
    count.figures |= {"seconds not followed": round(sum(seen.gaps), 1)}
    for name in dict.fromkeys(name for each in samples.taken for name in each):
        with count.trial(f"seed {effort.seed}, {name} at the end"):
            steady(count, samples, name)


def changed(count: Count, place: Where, effort: Effort, third: int, until: float) -> None:
    """The changes of a third of a part, spread over what is left of its time."""
    with place.hands(effort.chance(f"{count.what} {third}")) as by_hand:
        if by_hand.si and third % THIRDS:
            sessions_ended(by_hand.si)
            count.add("sessions ended", 1)
        for left in range(CHANGES, 0, -1):
            by_hand.change(place.changes)
            time.sleep(max(0.0, until - time.monotonic()) / left)
        count.add("changes", sum(by_hand.done.values()))
        count.add("refused", sum(by_hand.refused.values()))


def steady(count: Count, samples: Samples, name: str) -> None:
    first, last = samples.quarters(name)
    count.figures |= {f"{name}, first quarter": round(first, 1), f"{name}, last": round(last, 1)}
    most = first * MEMORY if name == "MiB" else first + OTHERS
    assert last <= most, f"{first:g} in the first quarter, {last:g} in the last"


class Sandbox:
    """The site with its password in a file, on a sandbox that starts again."""

    changes = tuple(each for each in hands.FOLLOWED + hands.READ_AT_INTERVALS if each not in LASTING + NAMES)
    pid = 0

    def __init__(self, folder: Path) -> None:
        self.world, self.site, self._password = (
            folder / each for each in ("world.yaml", "site.yaml", "password")
        )
        self.state = worlds.state(self.world)
        found = yaml.load(SITE.read_text(), yaml.BaseLoader)  # 0x10de is no number
        password = {"file": str(self._password)}
        found["vcenter"]["password"] = password
        for each in ("customer_password", "vcenter_password"):
            found["bitfusion_server"]["bf-01"]["properties"][each] = {"file": str(folder / "other.password")}
        (folder / "other.password").write_text("Another-password-1!")
        found["manifests"]["queues"]["files"] = [str(SPECS / "manifests/queues")]
        self.site.write_text(yaml.safe_dump(found))
        self.running = self._started("Password-of-the-first-part-0!")

    def _started(self, password: str) -> Running:
        world = yaml.safe_load(SMALL_WORLD.read_text())
        world["env"]["VCENTER_PASSWORD"] = password
        self.world.write_text(yaml.safe_dump(world))
        self._password.write_text(password)
        return start(self.world, self.state, pace=0)

    def renew(self, part: int) -> None:
        password = self._password.read_text()
        stop(self.state)
        if part % 2 == 0:
            for each in (self.state / "pki").glob("*.*.pem"):
                each.unlink()
        else:
            password = f"Password-of-part-{part}!"
        self.running = self._started(password)

    def mend(self) -> None:
        outcome = apply(self.site, self.running)
        assert made(outcome), endings(outcome)

    @contextmanager
    def hands(self, chance: random.Random) -> Iterator[hands.Hands]:
        with hands.hands(self.running, chance) as found:
            yield found

    def drift(self) -> Report:
        return drift(self.site, self.running)

    def look(self) -> Numbers:
        found = held(self.pid)
        try:
            return found | {"sessions": len(self.running.sessions()["vcenter"])}
        except OSError:  # it starts again
            return found


class InCluster:
    """The site's part in a cluster, entered by a token."""

    changes = tuple(each for each in on_cluster.CHANGES if each not in LASTING)
    pid = 0

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder / "cluster", cluster
        self.folder.mkdir()
        cluster.kubectl("create", "namespace", "keys")
        cluster.kubectl("create", "serviceaccount", "watched", "-n", "keys")
        role = ("--clusterrole=cluster-admin", "--serviceaccount=keys:watched")
        cluster.kubectl("create", "clusterrolebinding", "watched", *role)
        self.site = on_cluster.written(self.folder, self._entry(0))

    def _entry(self, number: int) -> dict[str, Any]:
        """A kubeconfig whose token lasts for as long as the Secret to which it is bound."""
        self.cluster.kubectl("create", "secret", "generic", f"key-{number}", "-n", "keys")
        bound = ("--bound-object-kind=Secret", f"--bound-object-name=key-{number}")
        token = self.cluster.kubectl("create", "token", "watched", "-n", "keys", "--duration=2h", *bound)
        found = self.cluster.config
        found["users"][0]["user"] = {"token": token.strip()}
        return found

    def renew(self, part: int) -> None:
        if part % 2 == 0:
            self.cluster.renew_certificate()
        else:
            on_cluster.enter(self.folder, self._entry(part))
            before = max(0, part - 2)
            self.cluster.kubectl("delete", "secret", f"key-{before}", "-n", "keys")

    def mend(self) -> None:
        self.cluster.settle()
        on_cluster.applied(self.site)

    @contextmanager
    def hands(self, chance: random.Random) -> Iterator[hands.Hands]:
        yield hands.Hands(chance, kube=self.cluster.kube(), kubectl=self.cluster.kubectl)

    def drift(self) -> Report:
        self.cluster.settle()
        return on_cluster.drift(self.site)

    def look(self) -> Numbers:
        return held(self.pid)
