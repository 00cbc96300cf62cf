"""What a site would say of a Tanzu cluster that stands there."""

from __future__ import annotations

from bfinfra.kinds.supervisor.tanzu_cluster.spec import CLUSTER_CLASS
from bfinfra.kinds.supervisor.tanzu_cluster.state import State
from bfinfra.model.description import Description, Path

POOL = "workers"
"""What the workers are called of an API that has one pool."""


def description(name: str, state: State) -> Description:
    """The object in the words of a site. It holds authorities' certificates where a site names files: these
    are left as they are.
    """
    view = state.form.view(state.body, POOL)
    fill_in: dict[Path, str] = {
        ("trust", authority): "a file with the authority's certificate (PEM); until then it is left as it is"
        for authority in view.pop("trust", {})
    }
    if view.get("cluster_class") == CLUSTER_CLASS:
        view.pop("cluster_class")
    return Description(name, {"namespace": state.namespace, "api": state.api, **view}, state, fill_in)
