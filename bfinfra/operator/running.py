"""The operator as a process: it leads or waits, watches, keeps the Sites, serves metrics, and ends when it is
stopped.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import replace

from bfinfra.app.metrics import serve
from bfinfra.backends.kubernetes import ClusterClient, incluster
from bfinfra.backends.kubernetes.access import Access
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.records import dataclass
from bfinfra.operator.job import Mould
from bfinfra.operator.keeper import Keeper
from bfinfra.operator.lease import Lease
from bfinfra.operator.process import access, log_to_stderr
from bfinfra.operator.watch import watch

log = logging.getLogger("bfinfra.operator")


@dataclass(frozen=True)
class How:
    """`mould`: without an image, it is that of the operator's pod. `namespaces`: () for all. `lease`: its
    namespace ("" for the pod's own) and name. `metrics`: address and port.
    """

    mould: Mould
    metrics: tuple[str, int]
    namespaces: tuple[str, ...] = ()
    jobs: int = 20
    lease: tuple[str, str] = ("", "bfinfra-operator")
    kubeconfig: str = ""

    @property
    def enter(self) -> Callable[[], Access]:
        """The credentials for the API server, read again for each login."""
        return access(self.kubeconfig)


def run(how: How, stop: threading.Event) -> int:
    """Run until `stop`, or a signal that kopf handles. Returns 0; 1 if another replica leads by now, so that
    Kubernetes restarts this one. Raises BfinfraError.
    """
    log_to_stderr()
    namespace = how.lease[0] or incluster.namespace()
    if not namespace:
        raise BfinfraError(
            Problem(
                "the operator's Lease has no namespace",
                next="outside of a cluster, give it: --lease NAMESPACE/NAME",
            )
        )
    how.enter()  # what can't be read now won't be readable later
    transport = Transport()
    cluster = ClusterClient(transport, "the operator's cluster", how.enter)
    lease = Lease(
        cluster, namespace, how.lease[1], f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    )
    keeper = Keeper(
        cluster,
        replace(how.mould, image=how.mould.image or _own_image(cluster, namespace)),
        how.jobs,
        how.namespaces or ("",),
    )
    keeper.figures.show(keeper.rows, lambda: keeper.looks.running, lambda: lease.leading)
    server = serve(how.metrics, keeper.figures.registry)
    try:
        if not lease.lead(stop):
            return 0
        log.info("%s leads", lease.me)
        return _led(how, keeper, lease, stop)
    finally:
        stop.set()
        lease.release()
        cluster.close()
        transport.close()
        server.shutdown()
        server.server_close()


def _led(how: How, keeper: Keeper, lease: Lease, stop: threading.Event) -> int:
    """Run while this replica leads. If one part ends, all do."""
    keeper.begin()
    lost = threading.Event()

    def renewing() -> None:
        lease.keep(stop, lost)
        stop.set()

    def keeping() -> None:
        ended = False
        try:
            keeper.run(stop)
            ended = True
        finally:
            if not ended:
                lost.set()
            stop.set()

    threads = [threading.Thread(target=each, name=each.__name__) for each in (renewing, keeping)]
    for each in threads:
        each.start()
    try:
        watch(keeper, how.enter, how.namespaces, stop)
    finally:
        stop.set()
        for each in threads:
            each.join()
    if lost.is_set():
        log.error("%s can't go on leading", lease.me)
    return int(lost.is_set())


def _own_image(cluster: ClusterClient, namespace: str) -> str:
    """The image of the operator's own pod."""
    pod = cluster.get("v1", "Pod", os.environ.get("HOSTNAME") or "nowhere", namespace) or {}
    for container in (pod.get("spec") or {}).get("containers") or ():
        return str(container["image"])
    raise BfinfraError(
        Problem(
            "the Jobs' image is not known",
            why="the operator does not run in a pod",
            next="give it with --image IMAGE",
        )
    )
