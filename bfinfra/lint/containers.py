"""Checks of containers: which may request GPUs, in which order they are, and whether they clash with what the
webhook adds.
"""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.lint.pods import Entries, Pod, child, entries, text
from bfinfra.model.device_plugin import COUNTS, Release
from bfinfra.model.remark import Remark, error, refused
from bfinfra.model.yaml import Node

POPULATE = "populate"
VOLUMES = (
    "bitfusion-distro",
    "bitfusion-opt",
    "client-dir",
    "client-from-secret",
    "servers-from-secret",
    "ca",
)


def rules(pod: Pod, release: Release) -> Iterator[Remark]:
    """The remarks on a pod's containers and volumes."""
    yield from _init_containers(pod)
    yield from _gpu_containers(pod, release)
    for volume in _listed(pod.spec, "volumes"):
        name = child(entries(volume), "name")
        if name is not None and text(name) in VOLUMES:
            yield refused(
                f"the volume {text(name)} clashes",
                name.at,
                "the webhook adds one of that name",
                "choose another name",
            )


def _init_containers(pod: Pod) -> Iterator[Remark]:
    for each in pod.init_containers:
        for name, entry in each.asks.items():
            yield refused(
                f"the initContainer {each.name} asks for {name}",
                entry.at,
                "the webhook changes only containers, and no node has this resource",
                "move what needs GPUs into a container",
            )
        if each.name == POPULATE:
            yield refused(
                f"the name {POPULATE} is taken",
                each.at,
                "the webhook adds an initContainer of that name",
                "choose another name",
            )
        if any("bitfusion" in text(node) for node in each.command):
            yield error(
                f"the initContainer {each.name} runs before the client is there",
                each.at,
                f"the webhook adds {POPULATE}, which installs it, after the pod's own",
                "run it in a container",
            )


def _gpu_containers(pod: Pod, release: Release) -> Iterator[Remark]:
    with_gpus = pod.container_of_gpus()
    for _, container in with_gpus[1:]:
        yield error(
            f"the container {container.name} is the second that requests GPUs",
            container.at,
            "the webhook overwrites the first container by a later one",
            "use one container with GPUs for each pod: split the pod",
        )
    if with_gpus and with_gpus[0][0] > 0:
        yield error(
            f"the container {with_gpus[0][1].name} requests GPUs and isn't the first",
            with_gpus[0][1].at,
            "the webhook overwrites the first container by it",
            "put it first",
        )
    for container in pod.containers if release.strict and with_gpus else ():
        if container.command and not COUNTS & container.asks.keys():
            yield refused(
                f"the container {container.name} has a command and requests no GPU",
                container.fields["command"].at,
                (
                    f"release {release.version} refuses the pod: each container with a command must request "
                    f"{release.count}"
                ),
                "remove its command, or run it in its own pod",
            )


def _listed(fields: Entries, name: str) -> list[Node]:
    """The items of a list; () if it is missing."""
    node = child(fields, name)
    return node.value if node is not None and isinstance(node.value, list) else []
