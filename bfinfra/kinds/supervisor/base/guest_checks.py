"""Checks of existing workload clusters: logins and certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from bfinfra.kinds.cluster_checks import cluster_checks
from bfinfra.kinds.server_checks import Check, certified
from bfinfra.kinds.supervisor.base.namespaces import enter as enter_namespace
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Blocked, Finding
from bfinfra.model.refs import Key
from bfinfra.model.trust import Server, host_and_port

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient
    from bfinfra.kinds.checks import CheckContext

GUESTS = ("tanzu_cluster", "vks_cluster")
"""The kinds of clusters in supervisor namespaces."""


def enter(context: CheckContext, key: Key) -> ClusterClient:
    """The cluster's API. Raises Blocked if it doesn't run yet, or its supervisor is not trusted."""
    return enter_namespace(context, key, context.site.resources[key].namespace, guest=key.name)


def servers(context: CheckContext, *kinds: str) -> Iterator[Server]:
    """The API of each workload cluster that runs, with the authority that its supervisor reports. Leaves out
    clusters that it can't log in to.
    """
    for key in (key for kind in kinds for key in context.of(kind)):
        try:
            access = enter(context, key).access()
        except (Blocked, BfinfraError):
            continue
        host, port = host_and_port(access.url.removeprefix("https://"))
        yield Server(str(key), host, port, access.trust, access.extra_pem)


def guest_checks(kind: str) -> Mapping[str, Check]:
    """The checks of the clusters of a kind."""
    return {"clusters.certificates": partial(_certificates, kind=kind), **cluster_checks(kind, enter)}


def _certificates(context: CheckContext, *, kind: str) -> Iterator[Finding]:
    """A finding per workload cluster: whether its certificate is trusted, and good for a month."""
    for server in servers(context, kind):
        yield certified(context, server, f"{server.what} {server.address}")
