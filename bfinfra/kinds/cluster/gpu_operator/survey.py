"""Reads the nodes, drivers, operands and pods with GPUs of an operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from bfinfra.kinds.cluster.base.objects import Object
from bfinfra.kinds.cluster.base.rendered.state import State
from bfinfra.kinds.cluster.base.rendered.steps import Fields
from bfinfra.kinds.cluster.gpu_operator import layouts
from bfinfra.kinds.cluster.gpu_operator.policy import CLAIMS, DRIVER, GROUP, KIND
from bfinfra.kinds.cluster.gpu_operator.spec import Spec
from bfinfra.kinds.cluster.gpu_operator.state import (
    MANAGER,
    GpuState,
    Node,
    User,
    driver_of,
    images_of,
    is_driver,
    node_of,
    user_of,
)
from bfinfra.model import foreign

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

CONFIG = "default-mig-parted-config"
CLAIMS_API, CLAIMED_BY = "resource.k8s.io/v1", "gpu.nvidia.com"
"""The API of resource claims, and NVIDIA's driver of GPUs there."""


def surveyed(client: ClusterClient, state: State, spec: Spec | None, owner: str) -> GpuState:
    """The state with what is at its nodes. Pods of all namespaces are read only while GPUs are to be divided.
    `owner`: `site kind/name`.
    """
    sets = client.list("apps/v1", "DaemonSet", state.namespace)
    pods = client.list("v1", "Pod", state.namespace)
    images = {
        each["metadata"]["name"]: images_of(_template(each).get("spec") or {})
        for each in sets
        if is_driver(_labels(_template(each)))
    }
    managers = {
        str(pod["spec"].get("nodeName")): (pod["metadata"]["name"], str(pod["metadata"].get("uid")))
        for pod in pods
        if _labels(pod).get("app") == MANAGER and not pod["metadata"].get("deletionTimestamp")
    }
    listed = client.list("v1", "Node")
    nodes = {each.name: each for each in (node_of(obj, managers, {}) for obj in listed)}
    if any(_open(each, spec, owner) for each in nodes.values()):
        claims = _by_claims(client) if spec is not None and spec.allocate == "dra" else frozenset()
        users = _users(client.list("v1", "Pod"), claims)
        nodes = {each.name: each for each in (node_of(obj, managers, users) for obj in listed)}
    given: Fields = {each.name: getattr(state, each.name) for each in fields(state)}
    return GpuState(
        **given,
        owner=owner,
        nodes=nodes,
        drivers=tuple(driver_of(pod, images) for pod in pods if is_driver(_labels(pod))),
        operands=tuple(each["metadata"]["name"] for each in sets if _is_operand(each, state.contents)),
        driver_images=frozenset(image for each in images.values() for image in each),
        layouts=_layouts(client, state) if spec is not None and spec.mig_layouts else None,
        slices=_slices(client) if spec is not None and spec.allocate == "dra" else frozenset(),
    )


def _open(node: Node, spec: Spec | None, owner: str) -> bool:
    """Whether the GPUs of a node are to be divided."""
    if node.note is not None and node.note.by == owner:
        return True
    wanted = spec.layout_of(node.name, node.labels) if spec is not None and node.has_gpus else ""
    return bool(wanted) and not layouts.done(node, wanted)


def _users(pods: Iterable[Object], claims: Container[str]) -> Mapping[str, list[User]]:
    found: dict[str, list[User]] = defaultdict(list)
    for pod in pods:
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        if node and (user := user_of(pod, claims)):
            found[node].append(user)
    return found


def _layouts(client: ClusterClient, state: State) -> frozenset[str] | None:
    """The layouts in the MIG manager's configuration; None if there is none that can be read."""
    policy = next((t.manifest for each, t in state.things.items() if each.type == (GROUP, KIND)), {})
    manager = (policy.get("spec") or {}).get("migManager") or {}
    name = str((manager.get("config") or {}).get("name") or CONFIG)
    config = client.get("v1", "ConfigMap", name, state.namespace)
    text = ((config or {}).get("data") or {}).get("config.yaml")
    try:
        (found,) = foreign.documents(text or "")
        known = (found or {}).get("mig-configs")
    except (ValueError, AttributeError):
        return None
    return frozenset(str(each) for each in known) if isinstance(known, Mapping) else None


def _slices(client: ClusterClient) -> frozenset[str]:
    """The nodes whose GPUs can be claimed: of each, NVIDIA's driver of GPUs has published the whole pool, and
    a device is in it. Its driver of compute domains publishes slices without any GPU.
    """
    pools: dict[str, list[Object]] = defaultdict(list)
    for each in client.list(CLAIMS_API, "ResourceSlice"):
        spec = each.get("spec") or {}
        if spec.get("driver") == CLAIMED_BY and spec.get("nodeName"):
            pools[str(spec["nodeName"])].append(spec)
    return frozenset(node for node, specs in pools.items() if _whole(specs))


def _whole(specs: Sequence[Object]) -> bool:
    """Whether slices are all of a pool, with a device: a scheduler takes none from a part of one."""
    newest = max(spec["pool"]["generation"] for spec in specs)
    now = [spec for spec in specs if spec["pool"]["generation"] == newest]
    return len(now) == now[0]["pool"]["resourceSliceCount"] and any(spec.get("devices") for spec in now)


def _by_claims(client: ClusterClient) -> frozenset[str]:
    """The pods that have GPUs by claims for themselves, by their uids."""
    found = set()
    for each in client.list(CLAIMS_API, "ResourceClaim"):
        status = each.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        if any(one.get("driver") == CLAIMED_BY and not one.get("adminAccess") for one in results):
            found |= {str(user.get("uid")) for user in status.get("reservedFor") or ()}
    return frozenset(found)


def _is_operand(obj: Object, others: Sequence[str]) -> bool:
    """Return whether the operator made it for an object of this resource. `others`: objects of others, as
    `ClusterPolicy theirs`.
    """
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(
        owner.get("kind") in (KIND, CLAIMS, DRIVER) and f"{owner['kind']} {owner.get('name')}" not in others
        for owner in owners
    )


def _template(obj: Object) -> Object:
    return dict((obj.get("spec") or {}).get("template") or {})


def _labels(obj: Object) -> Object:
    return dict((obj.get("metadata") or {}).get("labels") or {})
