"""A Linux machine as the node of a Kubernetes cluster: the GPUs that its containers get, and FlexDirect as
they find it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bfinfra.sandbox.kubernetes.nvidia import Gpus, hands_out
from bfinfra.sandbox.linux import gpus, runtimes
from bfinfra.sandbox.linux.machine import Machine

RUNTIMES = {"docker.service": "/etc/docker/daemon.json", "containerd.service": "/etc/containerd/config.toml"}
VERSION = "1.11"


@dataclass(frozen=True)
class GpuServer:
    """A machine whose scheduler gives out GPUs. `memory`: MiB of each."""

    uuid: str
    version: str
    memory: tuple[int, ...]


@dataclass(frozen=True)
class NodeMachine:
    """`serving`: FlexDirect servers that listen, "ip:port" → the machine."""

    machine: Machine
    serving: Callable[[], Mapping[str, Machine]]

    @property
    def installed(self) -> bool:
        """FlexDirect's program is there."""
        return self.machine.read("/usr/bin/flexdirect") is not None

    @property
    def licensed(self) -> bool:
        """`flexdirect init` has run."""
        return gpus.initialized(self.machine)

    def folder(self, path: str) -> bool:
        """Return whether the node has this folder."""
        found = self.machine.files.get(path)
        return found is not None and found.content is None

    def folders(self) -> frozenset[str]:
        """All that it has."""
        return frozenset(path for path, node in list(self.machine.files.items()) if node.content is None)

    def read(self, path: str) -> str | None:
        """A file's content; None where there is none."""
        found = self.machine.read(path)
        return None if found is None else found.decode(errors="replace")

    def has_image(self, name: str) -> bool:
        """Return whether a container runtime has an image of this name, so that it is not pulled."""
        return runtimes.canonical(name) in runtimes.images(self.machine)

    def servers(self) -> dict[str, GpuServer]:
        """The GPU servers that listen."""
        return {address: _server(machine) for address, machine in self.serving().items()}

    def health(self) -> list[str]:
        """The lines of its health check."""
        return gpus.health(self.machine, self.serving()).text.splitlines()


def gpus_of(machine: Machine) -> Gpus:
    """Its GPUs, whose driver comes with them; the runtimes that run and hand them to containers; whether its
    vGPUs have a license.
    """
    docker, containerd = (
        machine.read(path) if (unit := machine.services.get(name)) and unit.active else None
        for name, path in RUNTIMES.items()
    )
    return Gpus(len(machine.gpus), hands_out(docker, containerd), gpus.licensed(machine))


def _server(machine: Machine) -> GpuServer:
    """The GPUs that its scheduler is configured to give out: a number, or these."""
    unit = (machine.read(f"/etc/systemd/system/{gpus.SCHEDULER}") or b"").decode(errors="replace")
    count, chosen = re.search(r" -n (\d+)", unit), re.search(r" -d ([\d,]+)", unit)
    numbers = (
        [int(each) for each in chosen[1].split(",")]
        if chosen
        else range(int(count[1]) if count else len(machine.gpus))
    )
    return GpuServer(
        gpus.host_id(machine),
        VERSION,
        tuple(machine.gpus[each] for each in numbers if each < len(machine.gpus)),
    )
