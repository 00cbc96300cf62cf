"""Checks for what would stop an apply of namespaces: supervisors that don't run, their
certificates, logins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.kinds.cluster_checks import cluster_checks
from bfinfra.kinds.server_checks import certified
from bfinfra.kinds.supervisor.base.namespaces import catalog, enter, servers
from bfinfra.model.finding import Finding, bad, good
from bfinfra.model.refs import Key
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext


def certificates(context: CheckContext) -> Iterator[Finding]:
    """A finding per supervisor: whether its certificate is trusted, and good for a month."""
    for server in servers(context):
        yield certified(context, server, f"{server.what} {server.address}")


def supervisors(context: CheckContext) -> Iterator[Finding]:
    """A finding per vSphere cluster with namespaces of the site: whether workload management is enabled."""
    for key, spec in context.of("supervisor_namespace").items():
        known = context.once(catalog).supervisors
        found = known.get(spec.cluster)
        ours = context.site.resources.get(Key("supervisor", spec.cluster))
        if found is None and ours is not None and ours.enable:
            yield good(key, f"this site enables the supervisor on {spec.cluster}")
        elif found is None:
            yield bad(
                key,
                f"no supervisor runs on the cluster {spec.cluster}",
                next=f"enable workload management there; {nearest(spec.cluster, known)}".rstrip("; "),
            )
        elif not found.running:
            yield bad(
                key,
                f"the supervisor on {spec.cluster} does not run",
                next="read its messages under Workload Management in vCenter",
            )
        else:
            yield good(key, f"the supervisor on {spec.cluster} runs at {found.endpoint}")


CHECKS = {
    "vcenter.supervisors": supervisors,
    "clusters.certificates": certificates,
    **cluster_checks(
        "supervisor_namespace",
        lambda context, key: enter(context, key, key.name),
        given="in the namespace's field access",
    ),
}
