"""Describes an existing cluster as a site writes it."""

from __future__ import annotations

from bfinfra.kinds.supervisor.vks_cluster.spec import PUBLIC
from bfinfra.kinds.supervisor.vks_cluster.state import State
from bfinfra.model.description import Description


def description(name: str, state: State) -> Description:
    """The object in a site's fields. Of a disk's storage class, only that of its nodes is known."""
    view = state.view()
    for nodes in (view, view.get("control_plane") or {}, *(view.get("workers") or {}).values()):
        for volume in (nodes.get("volumes") or {}).values():
            volume.pop("storage_class", None)
    if view.get("class_namespace") == PUBLIC:
        view.pop("class_namespace")
    return Description(name, {"namespace": state.namespace, **view}, state, {})
