"""The container runtimes: the commands that list, load and remove images, and the runtime that a machine's
kubelet uses. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from bfinfra.backends.images import full_name
from bfinfra.model.records import dataclass

Runtime = Literal["docker", "containerd", "podman"]
RUNTIMES: tuple[Runtime, ...] = ("docker", "containerd", "podman")
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
SOCKETS: Mapping[str, Runtime] = {"docker": "docker", "containerd": "containerd", "crio": "podman"}
LISTED = "{{.Repository}}:{{.Tag}} {{.ID}}"
CTR = ("ctr", "--namespace", "k8s.io")
LISTS: Mapping[str, Sequence[str]] = {
    "docker": ("docker", "image", "ls", "--no-trunc", "--format", LISTED),
    "containerd": (*CTR, "images", "ls"),
    "podman": ("podman", "image", "ls", "--no-trunc", "--format", LISTED),
}


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands that Ansible runs on a machine for one image. `used`: prints something if containers use
    the image, for runtimes that would remove it nevertheless; empty for others.
    """

    load: tuple[str, ...]
    show: tuple[str, ...]
    used: tuple[str, ...]
    remove: tuple[str, ...]


def commands(runtime: str, image: str, archive: str) -> Commands:
    """The commands. `archive`: its path on the machine."""
    name = full_name(image)
    if runtime == "containerd":
        return Commands(
            (*CTR, "images", "import", archive),
            (*CTR, "images", "ls", f"name=={name}"),
            (*CTR, "containers", "ls", "--quiet", f"image=={name}"),
            (*CTR, "images", "rm", name),
        )
    if runtime == "docker":
        name = name.removeprefix("docker.io/").removeprefix(
            "library/"
        )  # its list has no field with that name
    return Commands(
        (runtime, "load", "--input", archive),
        (runtime, "image", "ls", "--no-trunc", "--quiet", name),
        (),
        (runtime, "image", "rm", name),
    )


def listed(runtime: str, text: str) -> dict[str, str]:
    """Full name → id, from the output of a runtime's list. Each runtime has ids of its own for the same
    image.
    """
    found = {}
    for line in text.splitlines():
        words = line.split()
        if runtime == "containerd" and len(words) > 2 and words[2].startswith("sha256:"):
            found[words[0]] = words[2]
        elif (
            runtime != "containerd"
            and len(words) == 2
            and words[1].startswith("sha256:")
            and "<none>" not in words[0]
        ):
            found[full_name(words[0])] = words[1]
    return found


def of_kubelet(flags: str) -> Runtime | None:
    """The runtime in the flags that kubeadm gave to a machine's kubelet; None if they name none."""
    socket = re.search(r"--container-runtime-endpoint=\S*?(docker|containerd|crio)", flags)
    return SOCKETS[socket[1]] if socket else None
