"""What no workload cluster can change once it exists."""

from __future__ import annotations

from collections.abc import Collection

from bfinfra.model.errors import Refusal


def check(fields: Collection[str], nodes: int, wanted: int) -> None:
    """Raises Refusal for another network, and for a smaller control plane. `fields`: the dotted fields that
    change; `nodes`: those of the live control plane; `wanted`: the nodes that it should have.
    """
    if networks := sorted(field for field in fields if field.startswith("network.")):
        raise Refusal(
            "the network of a cluster can't be changed",
            field=networks[0],
            why="it is fixed when the cluster is created",
            next="create another cluster, move the workloads, and delete this one",
        )
    if "control_plane.count" in fields and wanted < nodes:
        raise Refusal(
            "a control plane can't shrink",
            field="control_plane.count",
            why=f"it has {nodes} nodes",
            next=f"write {nodes}",
        )
