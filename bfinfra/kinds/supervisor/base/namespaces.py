"""The supervisors and the namespaces of a site, as checks find them and log in there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.namespaces import Catalog, Namespace, Namespaces
from bfinfra.model.endpoint import SUPERVISOR_PORT, Endpoint
from bfinfra.model.errors import Malformed, Unreachable
from bfinfra.model.finding import Blocked
from bfinfra.model.refs import Key
from bfinfra.model.trust import Server, Trust, host_and_port

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient
    from bfinfra.kinds.checks import CheckContext


def catalog(context: CheckContext) -> Catalog:
    """Return what the supervisors offer. Raises Blocked."""
    clusters = (spec.cluster for spec in context.of("supervisor_namespace").values())
    return Namespaces(context.entered()).catalog(clusters)


def namespaces(context: CheckContext) -> Mapping[str, Namespace]:
    """The site's supervisor namespaces that exist. Raises Blocked."""
    named = {key.name for key in context.of("supervisor_namespace")}
    known = Namespaces(context.entered())
    return known.details(sorted(named & set(known.list())), context.once(catalog)) if named else {}


def servers(context: CheckContext) -> Iterator[Server]:
    """The servers for logins and the API of each supervisor that the site's namespaces are on. Raises Blocked
    if vCenter can't be read.
    """
    clusters = dict.fromkeys(spec.cluster for spec in context.of("supervisor_namespace").values())
    for name in clusters:
        supervisor = context.once(catalog).supervisors.get(name)
        if supervisor is None or not supervisor.endpoint:
            continue
        vcenter = context.entered()
        own = vcenter.settings.supervisor_trust
        host, port = host_and_port(supervisor.endpoint)
        for each in (port, SUPERVISOR_PORT):
            pem = "" if own else vcenter.authorities()
            yield Server(f"supervisor on {name}", host, each, own or Trust(), pem)


def distrusted(context: CheckContext) -> frozenset[str]:
    """The supervisors, by host, whose certificate is not trusted: no check logs in there. Raises Blocked."""
    found = set()
    for server in servers(context):
        with contextlib.suppress(Unreachable, Malformed):  # the checks that log in there report it
            if context.look(server).objection:
                found.add(server.host)
    return frozenset(found)


def at_supervisor(context: CheckContext, endpoint: Endpoint, about: str) -> ClusterClient:
    """The API at a supervisor or through it. Raises Blocked if its certificate is not trusted."""
    if host_and_port(endpoint.server)[0] in context.once(distrusted):
        raise Blocked(about, "its supervisor's certificate is not trusted")
    return context.clusters.at(endpoint)


def enter(context: CheckContext, key: Key, namespace: str, guest: str = "") -> ClusterClient:
    """The API of a namespace, or of a cluster in it. Raises Blocked if that doesn't exist yet, or its
    supervisor is not trusted.
    """
    home = context.once(namespaces).get(namespace)
    if home is None or home.status != "RUNNING" or not home.endpoint:
        raise Blocked(str(key), "it doesn't exist yet: apply creates it")
    return at_supervisor(context, Endpoint(server=home.endpoint, namespace=home.name, guest=guest), str(key))
