"""Describes an existing Tanzu cluster as a site writes it."""

from __future__ import annotations

from bfinfra.kinds.supervisor.tanzu_cluster.spec import CLUSTER_CLASS
from bfinfra.kinds.supervisor.tanzu_cluster.state import State
from bfinfra.model.description import Description, Path

POOL = "workers"
"""The name of the worker pool, for an API that has exactly one pool."""


def description(name: str, state: State) -> Description:
    """The object in a site's fields. The object holds authorities as certificates, and a site names files:
    those fields are to be filled in.
    """
    view = state.form.view(state.body, POOL)
    fill_in: dict[Path, str] = {
        (
            "trust",
            authority,
        ): "a file with the authority's certificate (PEM); until then bfinfra leaves it as it is"
        for authority in view.pop("trust", {})
    }
    if view.get("cluster_class") == CLUSTER_CLASS:
        view.pop("cluster_class")
    return Description(name, {"namespace": state.namespace, "api": state.api, **view}, state, fill_in)
