"""Finds the resource pool that a field names, whether the site makes it or not."""

from __future__ import annotations

from bfinfra.backends.vcenter.places import Cluster, Inventory, Nowhere
from bfinfra.kinds.named import the
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext


def pool_named(
    name: str, field: str, cluster: Cluster, inventory: Inventory, context: PlanContext
) -> str | Unknown:
    """The pool's id, or Unknown if this site has still to make it. Raises Refusal if the cluster has no such
    pool.
    """
    need = context.needs.get(field)
    if need is not None and (need.spec is not None or need.state is not None):
        return Unknown(need.key, "pool") if need.state is None else str(need.state.pool.moid)
    if not name:
        return cluster.pool
    found = inventory.pool(name, cluster.moid)
    if isinstance(found, Nowhere) and context.mark.address.startswith("resource_pool/"):
        found = Nowhere((*context.siblings, *found.known))
    return the(found, "resource pool", name, field, f"on {cluster.name}").moid
