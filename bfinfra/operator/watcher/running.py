"""A watcher as a process: it hears of Sites, shares them with the other replicas, serves metrics, and gives
its Sites up when it is stopped.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import threading
from pathlib import Path

from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.metrics import serve
from bfinfra.app.watch import INTERVAL
from bfinfra.backends.kubernetes import ClusterClient, incluster
from bfinfra.backends.kubernetes.changes import ObjectChanges
from bfinfra.backends.kubernetes.cluster import Selected
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.pauses import pause
from bfinfra.model.records import dataclass
from bfinfra.operator.crd import KIND
from bfinfra.operator.declared import remove
from bfinfra.operator.lease import Lease
from bfinfra.operator.manifest import API
from bfinfra.operator.process import access, log_to_stderr
from bfinfra.operator.replicas import LABELS
from bfinfra.operator.watcher.follower import Desk
from bfinfra.operator.watcher.replica import Replica

ROUND = 20  # seconds of each watch request at most, well below the transport's read time-out
LONGEST = 30.0  # seconds at most until Sites are listed again
log = logging.getLogger("bfinfra.operator")


@dataclass(frozen=True)
class WatcherOptions:
    """`namespace`: whose Sites it follows, "" for the pod's own; `sites`: how many at most; `surveys`: how
    many first surveys at a time; `name`: this replica's, "" for the pod's; `interval`: as for `watch`.
    """

    metrics: tuple[str, int]
    namespace: str = ""
    sites: int = 100
    surveys: int = 4
    name: str = ""
    kubeconfig: str = ""
    interval: float = INTERVAL


def run(how: WatcherOptions, stop: threading.Event, context: RunContext = LIVE) -> int:
    """Run until `stop`. Returns 0. Raises BfinfraError."""
    log_to_stderr()
    namespace = how.namespace or incluster.namespace()
    if not namespace:
        raise BfinfraError(
            Problem("a watcher has no namespace", next="outside of a cluster, give it: --namespace NAME")
        )
    enter = access(how.kubeconfig)
    enter()  # what can't be read now won't be readable later
    folder, transport = Path(tempfile.mkdtemp(prefix="bfinfra-watcher-")), Transport()
    api = ClusterClient(transport, "the watcher's cluster", enter)
    replica = made(how, api, namespace, folder, context)
    server = serve(how.metrics, replica.figures.registry)
    feed = Feed(api, namespace, replica)
    hearing = threading.Thread(target=feed.run, args=(stop,), name="sites", daemon=True)
    try:
        hearing.start()
        replica.run(stop)
        replica.lease.release()
    finally:
        stop.set()
        feed.cancel()
        hearing.join(ROUND)
        transport.close()
        server.shutdown()
        server.server_close()
        remove(folder)
    return 0


def made(
    how: WatcherOptions, api: ClusterClient, namespace: str, folder: Path, context: RunContext
) -> Replica:
    """The replica of this process."""
    name = (how.name or os.environ.get("HOSTNAME") or f"{socket.gethostname()}-{os.getpid()}").lower()
    desk = Desk(api, folder, threading.Semaphore(how.surveys), context, how.interval)
    lease = Lease(api, namespace, name, name, meta={"labels": LABELS, **_owner(name)})
    replica = Replica(api, namespace, lease, desk, how.sites)
    replica.figures.show(lambda: len(replica.followers), replica.room)
    return replica


def _owner(name: str) -> dict[str, object]:
    """The pod, which Kubernetes tells by the downward API: its Lease goes with it."""
    uid = os.environ.get("POD_UID", "")
    pod = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    return {"ownerReferences": [pod]} if uid else {}


class Feed:
    """Tells the replica of every Site of a namespace, until it is cancelled."""

    def __init__(self, api: ClusterClient, namespace: str, replica: Replica) -> None:
        self._changes = ObjectChanges(api, Selected(API, KIND, namespace, ""), whole=True)
        self._replica = replica

    def run(self, stop: threading.Event) -> None:
        """List, and follow; again from the start whenever that ends."""
        failures = 0
        while not stop.is_set():
            try:
                self._replica.all(self._changes.all())
                while not stop.is_set():
                    self._changes.wait(ROUND, self._replica.site, self._replica.gone)
                    failures = 0
            except BfinfraError as error:
                if not stop.is_set():
                    log.warning("Sites can't be followed: %s", error)
                failures += 1
                stop.wait(pause(failures, longest=LONGEST))

    def cancel(self) -> None:
        """End a request that runs."""
        self._changes.cancel()
