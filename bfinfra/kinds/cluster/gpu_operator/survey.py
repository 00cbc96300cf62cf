"""Reads the nodes, drivers, operands and pods with GPUs of an operator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
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
    Parts,
    Plugin,
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
PROGRAM = "gpu-kubelet-plugin"
"""The program of the DRA driver's container; who installed it chose the names and labels of its pods."""


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
    pools = _pools(client) if spec is not None and spec.allocate == "dra" else None
    given: Fields = {each.name: getattr(state, each.name) for each in fields(state)}
    found = GpuState(
        **given,
        owner=owner,
        nodes={each.name: each for each in (node_of(obj, managers, {}, {}) for obj in listed)},
        drivers=tuple(driver_of(pod, images) for pod in pods if is_driver(_labels(pod))),
        operands=tuple(each["metadata"]["name"] for each in sets if _is_operand(each, state.contents)),
        driver_images=frozenset(image for each in images.values() for image in each),
        layouts=_layouts(client, state) if spec is not None and spec.mig_layouts else None,
        slices=None if pools is None else _slices(pools),
        dynamic=frozenset(node for node, specs in (pools or {}).items() if _divides(specs)),
    )
    if not any(_open(each, spec, found) for each in found.nodes.values()):
        return found
    claims = _by_claims(client) if found.slices is not None else frozenset()
    every = client.list("v1", "Pod")
    users, plugins = _users(every, claims), _plugins(every)
    read = (node_of(obj, managers, users, plugins) for obj in listed)
    return replace(found, nodes={each.name: each for each in read})


def _open(node: Node, spec: Spec | None, state: GpuState) -> bool:
    """Whether the GPUs of a node are to be divided, or to be published as they are divided."""
    if state.mine(node):
        return True
    wanted = spec.layout_of(node.name, node.labels) if spec is not None and node.has_gpus else ""
    return bool(wanted) and (not layouts.done(node, wanted) or state.stale(node))


def _users(pods: Iterable[Object], claims: Container[str]) -> Mapping[str, list[User]]:
    found: dict[str, list[User]] = defaultdict(list)
    for pod in pods:
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        if node and (user := user_of(pod, claims)):
            found[node].append(user)
    return found


def _plugins(pods: Iterable[Object]) -> Mapping[str, Plugin]:
    """The pods of NVIDIA's DRA driver that run, by node."""
    return {
        str(pod["spec"].get("nodeName")): Plugin(
            str(pod["metadata"].get("namespace") or ""),
            str(pod["metadata"]["name"]),
            str(pod["metadata"].get("uid") or ""),
        )
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp")
        and (pod.get("status") or {}).get("phase") == "Running"
        and any(
            PROGRAM in str(word).split()
            for container in (pod.get("spec") or {}).get("containers") or ()
            for part in ("command", "args")
            for word in container.get(part) or ()
        )
    }


def _layouts(client: ClusterClient, state: State) -> Mapping[str, tuple[Parts, ...]] | None:
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
    if not isinstance(known, Mapping):
        return None
    return {str(name): tuple(_options(entries)) for name, entries in known.items()}


def _options(entries: object) -> Iterator[Parts]:
    """What a GPU may be divided into in a layout; nothing if it names single GPUs, as mig-parted's numbers
    are not those of the DRA driver, or has GPUs with MIG and without a part, which are not published.
    """
    found = [each for each in entries if isinstance(each, Mapping)] if isinstance(entries, list) else []
    ways: list[object] = [each.get("mig-devices") if each.get("mig-enabled") else {} for each in found]
    empty = any(each.get("mig-enabled") and not each.get("mig-devices") for each in found)
    if not empty and all(each.get("devices") == "all" for each in found):
        yield from (dict(each) for each in ways if isinstance(each, Mapping))


def _pools(client: ClusterClient) -> Mapping[str, Sequence[Object]]:
    """The slices of NVIDIA's driver of GPUs, by node. Its driver of compute domains publishes slices without
    any GPU.
    """
    pools: dict[str, list[Object]] = defaultdict(list)
    for each in client.list(CLAIMS_API, "ResourceSlice"):
        spec = each.get("spec") or {}
        if spec.get("driver") == CLAIMED_BY and spec.get("nodeName"):
            pools[str(spec["nodeName"])].append(spec)
    return pools


def _divides(specs: Sequence[Object]) -> bool:
    """Whether a driver divides GPUs itself, as they are claimed: parts then share what their card has."""
    return any(device.get("consumesCounters") for spec in specs for device in spec.get("devices") or ())


def _slices(pools: Mapping[str, Sequence[Object]]) -> Mapping[str, tuple[Parts, ...]]:
    """The nodes whose GPUs can be claimed: of each, the whole pool is published, and a device is in it."""
    found = {node: _published(specs) for node, specs in pools.items()}
    return {node: gpus for node, gpus in found.items() if gpus}


def _published(specs: Sequence[Object]) -> tuple[Parts, ...]:
    """What can be claimed of each GPU of a pool; () if the slices are a part of it: a scheduler takes no
    device from that.
    """
    newest = max(spec["pool"]["generation"] for spec in specs)
    now = [spec for spec in specs if spec["pool"]["generation"] == newest]
    if len(now) != now[0]["pool"]["resourceSliceCount"]:
        return ()
    whole: list[Parts] = []
    parts: dict[str, Counter[str]] = defaultdict(Counter)
    for device in (each for spec in now for each in spec.get("devices") or ()):
        says = {name: value.get("string") for name, value in (device.get("attributes") or {}).items()}
        if says.get("type") == "mig":
            parts[str(says.get("parentUUID"))][str(says.get("profile"))] += 1
        else:
            whole.append({})
    return (*whole, *(dict(each) for each in parts.values()))


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
