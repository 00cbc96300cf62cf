"""Finds the resource pool that a field names, whether the site makes it or not."""

from __future__ import annotations

from bfinfra.backends.vcenter.places import Cluster, Inventory
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.suggest import nearest


def pool_named(
    name: str, field: str, cluster: Cluster, inventory: Inventory, context: PlanContext
) -> str | Unknown:
    """The pool's id, or Unknown if this site has still to make it. Raises Refusal if the cluster has no such
    pool.
    """
    need = context.needs.get(field)
    if need is not None and (need.spec is not None or need.state is not None):
        return Unknown(need.key, "pool") if need.state is None else str(need.state.pool.moid)
    found = inventory.pool(name, cluster.moid)
    if found is None:
        own = context.siblings if context.mark.address.startswith("resource_pool/") else ()
        known = [p.name for p in inventory.pools if p.owner == cluster.moid and not p.root]
        raise Refusal(
            f"there is no resource pool {name} on {cluster.name}",
            field=field,
            next=nearest(name, [*own, *known]) or "make it first",
        )
    return found.moid
