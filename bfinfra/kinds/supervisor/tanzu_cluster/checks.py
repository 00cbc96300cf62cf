"""Checks for what would stop an apply of Tanzu clusters: an API that their supervisor does not serve, and
logins to existing clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.cluster_checks import cluster_checks
from bfinfra.kinds.server_checks import certified
from bfinfra.kinds.supervisor.supervisor_namespace.checks import at_supervisor, catalog
from bfinfra.kinds.supervisor.supervisor_namespace.checks import enter as enter_namespace
from bfinfra.kinds.supervisor.tanzu_cluster.forms import FORMS
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Blocked, Finding, Health, bad, good
from bfinfra.model.refs import Key
from bfinfra.model.trust import Server, host_and_port

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient
    from bfinfra.kinds.checks import CheckContext


def enter(context: CheckContext, key: Key) -> ClusterClient:
    """The cluster's API. Raises Blocked if it doesn't run yet, or its supervisor is not trusted."""
    return enter_namespace(context, key, context.site.resources[key].namespace, guest=key.name)


def servers(context: CheckContext) -> Iterator[Server]:
    """The API of each Tanzu cluster that runs, with the authority that its supervisor reports. Leaves out
    clusters that it can't log in to.
    """
    for key in context.of("tanzu_cluster"):
        try:
            access = enter(context, key).access()
        except (Blocked, BfinfraError):
            continue
        host, port = host_and_port(access.url.removeprefix("https://"))
        yield Server(str(key), host, port, access.trust, access.extra_pem)


def certificates(context: CheckContext) -> Iterator[Finding]:
    """A finding per Tanzu cluster: whether its certificate is trusted, and good for a month."""
    for server in servers(context):
        yield certified(context, server, f"{server.what} {server.address}")


def tanzu(context: CheckContext) -> Iterator[Finding]:
    """A finding per supervisor: whether it serves the API in which the site writes its Tanzu clusters."""
    for key, spec in context.of("tanzu_cluster").items():
        home = context.site.resources[Key("supervisor_namespace", spec.namespace)]
        supervisor = context.once(catalog).supervisors.get(home.cluster)
        if supervisor is None or not supervisor.running:
            what, why = f"whether {spec.api} is served", f"no supervisor runs on {home.cluster}"
            yield Finding(str(key), Health.SKIPPED, what, why)
        elif at_supervisor(context, Endpoint(server=supervisor.endpoint), str(key)).serves(
            spec.api, FORMS[spec.api].kind
        ):
            yield good(key, f"the supervisor serves {spec.api}")
        else:
            yield bad(
                key,
                f"the supervisor serves no {spec.api}",
                next="write an api that it serves: kubectl api-versions shows them",
            )


CHECKS = {
    "clusters.certificates": certificates,
    **cluster_checks("tanzu_cluster", enter),
    "clusters.tanzu": tanzu,
}
