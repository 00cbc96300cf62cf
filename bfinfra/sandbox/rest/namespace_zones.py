"""Zones that are taken away from namespaces. Source: com.vmware.vcenter.namespaces.instances.Zones."""

from __future__ import annotations

from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.namespaces import PATH, change, may_configure, one
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.zones import zoned, zones_there


@route("DELETE", PATH + "/{namespace}/zones/{zone}")
def remove_zone(call: Call, namespace: str, zone: str) -> None:
    """Take a zone away from a namespace. NOT_ALLOWED_IN_CURRENT_STATE for its last."""
    if not zoned(call):
        raise Refused("OPERATION_NOT_FOUND", "zones of namespaces are there from 9.0")
    may_configure(call, namespace)
    info = one(call.state, namespace)
    now = zones_there(call.state, info)
    kept = [each for each in now if each["name"] != zone]
    if len(kept) == len(now):
        raise missing("The zone", zone)
    if not kept:
        raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", "A namespace keeps at least one zone.")
    change(call, namespace, lambda _: {"zones": kept})
