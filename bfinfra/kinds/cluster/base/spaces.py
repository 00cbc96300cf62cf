"""The namespaces of a cluster that a site names and doesn't make: whether they are there, and stay there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bfinfra.backends.words import safe
from bfinfra.kinds.capabilities import spaces_named
from bfinfra.kinds.cluster_locator import WHOLE, Cluster, going
from bfinfra.model.errors import Refusal
from bfinfra.model.order import Specs
from bfinfra.model.suggest import nearest

Object = Mapping[str, Any]
LASTING = ("default", "kube-system", "kube-public", "kube-node-lease")
"""Namespaces that every cluster has, and that it doesn't let go."""


def needed(wanted: Mapping[str, Any], site: Specs, cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Resource → the namespaces of the cluster that must be there before it is made, and that nothing of the
    site makes. `wanted`: those to be made, by name.
    """
    own = {name for key, spec in site.items() if key.kind == "namespace" for name in _made(key.name, spec)}
    found = {
        name: tuple(
            each
            for each in spaces_named(spec.requires(name, site), str(cluster.key))
            if each not in own and each not in LASTING
        )
        for name, spec in wanted.items()
    }
    return {name: spaces for name, spaces in found.items() if spaces}


def _made(name: str, spec: Any) -> tuple[str, str]:
    return (name, spec.namespace or name)


def refusals(
    needs: Mapping[str, Iterable[str]], there: Iterable[Object], cluster: Cluster, *, complete: bool
) -> Iterator[tuple[str, Refusal]]:
    """Why resources can't be made in these namespaces. `complete`: nothing that the site applies may make a
    namespace that isn't there.
    """
    known = {str(each["metadata"]["name"]): each for each in there}
    for name, spaces in needs.items():
        for space in spaces:
            if space in known and known[space]["metadata"].get("deletionTimestamp"):
                yield name, going(f"the namespace {space} of {cluster.key.name}", held(known[space]))
            elif space not in known and complete:
                yield (
                    name,
                    Refusal(
                        f"{cluster.key.name} has no namespace {space}",
                        field="namespace",
                        next=nearest(space, known)
                        or "create it first, or write it as a namespace: of the site",
                    ),
                )


def held(obj: Object) -> str:
    """What holds a namespace that is being deleted: its finalizers, and its conditions in the cluster's
    words; "" if nothing is said.
    """
    finalizers = [safe(each, 80) for each in obj["metadata"].get("finalizers") or ()]
    said = [
        safe(each.get("message") or each.get("reason"), 300)
        for each in (obj.get("status") or {}).get("conditions") or ()
        if isinstance(each, Mapping) and each.get("status") == "True"
    ]
    by = [f"held by {', '.join(finalizers)}"] if finalizers else []
    return "; ".join((*by, *dict.fromkeys(filter(None, said))))


def whole(cluster: Cluster) -> bool:
    """Return whether the cluster's namespaces can be asked for: of a supervisor, vCenter knows them."""
    return cluster.key.kind in WHOLE
