"""The certificates and host keys that a site's servers show, compared with what the site trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.diagnose import check_context
from bfinfra.model.site import Site
from bfinfra.model.trust import Trust

if TYPE_CHECKING:
    from bfinfra.backends.ansible.hostkeys import Shown as HostKeys
    from bfinfra.backends.certificate import Shown


def certificates(site: Site, *, context: RunContext = LIVE) -> list[Shown]:
    """The certificate of each server that the site names, compared with what the site trusts. No request is
    sent.
    """
    from bfinfra.backends.kubernetes import kubeconfig as kubeconfigs

    named = [(site.vcenter.server, "vcenter", site.vcenter.trust)] if site.vcenter else []
    for key, spec in site.resources.items():
        if reference := getattr(spec, "kubeconfig", None):
            access = kubeconfigs.read(reference, spec.context)
            named.append((access.address, str(key), access.trust))
    return [certificate(server, trust, what=what, context=context) for server, what, trust in named]


def certificates_inside(site: Site, *, context: RunContext = LIVE) -> list[Shown]:
    """The same for the supervisors of the site's namespaces and their running workload clusters.

    vCenter is asked for the supervisors' addresses, and trusted supervisors for their clusters'. Raises
    BfinfraError if vCenter can't be entered.
    """
    from bfinfra.kinds.supervisor.base import guest_checks as of_clusters
    from bfinfra.kinds.supervisor.base import namespaces

    if not any(key.kind == "supervisor_namespace" for key in site.resources):
        return []
    with check_context(site, context) as checks:
        if checks.login is not None:
            raise checks.login
        servers = [*namespaces.servers(checks), *of_clusters.servers(checks, *of_clusters.GUESTS)]
        return [checks.look(server) for server in servers]


def certificate(
    server: str, trust: Trust | None = None, *, what: str = "", context: RunContext = LIVE
) -> Shown:
    """The certificate of one server, host or host:port, compared with `trust`, or with this machine's
    store.
    """
    from bfinfra.backends.certificate import look

    return look(context.transport(), server, trust or Trust(), what=what)


def host_keys(site: Site, *, context: RunContext = LIVE) -> list[HostKeys]:
    """The SSH host keys of each machine that the site names, compared with those it trusts. No login is
    made.
    """
    machines = {key: spec for key, spec in site.resources.items() if key.kind == "linux_host"}
    if not machines:
        return []
    from bfinfra.backends.ansible import hostkeys

    transport = context.transport()
    return [hostkeys.look(transport, spec.machine(key.name), str(key)) for key, spec in machines.items()]
