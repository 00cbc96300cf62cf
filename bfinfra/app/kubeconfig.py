"""Access to one of a site's clusters."""

from __future__ import annotations

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.model.errors import BfinfraError, Problem, SiteError
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.suggest import nearest
from bfinfra.spec.load import needed_references


def kubeconfig(site: Site, address: str, *, context: RunContext = LIVE) -> str:
    """A kubeconfig for one of the site's clusters, with a token of a new login."""
    key = _cluster(site, address)
    with wiring.bound_kinds(site, context, site.resources, read_only=True) as bound:
        states = wiring.observe(bound, site.resources, context).states
        endpoint = getattr(states.get(key), "endpoint", None)
        if endpoint is not None:
            return str(bound.backends.clusters.kubeconfig(endpoint))
        if missing := needed_references(site, {}, ()):
            raise SiteError(*missing)
        raise BfinfraError(
            Problem(f"{key} has no Kubernetes API to reach", why="it does not exist yet, or is no cluster")
        )


def _cluster(site: Site, address: str) -> Key:
    """The cluster of that address or name. Raises BfinfraError."""
    from bfinfra.kinds.cluster_locator import CLUSTERS

    clusters = [key for key in site.resources if key.kind in CLUSTERS]
    for key in clusters:
        if address in (str(key), key.name):
            return key
    there = nearest(address, (str(key) if "/" in address else key.name for key in clusters))
    why = "" if clusters else "the site has no clusters"
    raise BfinfraError(Problem(f"{address} is no cluster of this site", "", why, there))
