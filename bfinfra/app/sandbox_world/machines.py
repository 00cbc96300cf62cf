"""The Linux machines that a site enters by SSH, with what it expects on them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bfinfra.app.sandbox_world.draft import Draft, Entry

Machines = dict[str, Entry]
SSH = 22
UBUNTU = re.compile(r"ubuntu(\d\d)(\d\d)")


def add(draft: Draft) -> None:
    """Add the machines to the world."""
    found = {key.name: _machine(draft, str(key), spec) for key, spec in draft.of("linux_host")}
    _clients(draft, found)
    for _, spec in draft.of("flexdirect_host"):
        if spec.scheduler:
            _has_gpus(found, spec.hosts, spec.scheduler.gpus or len(spec.scheduler.devices) or 1)
    for _, spec in draft.of("nvidia_container_toolkit"):
        _runs(found, spec.hosts, spec.runtime)
        _has_gpus(found, spec.hosts, 1)
    for _, spec in draft.of("loaded_image"):
        _runs(found, spec.hosts, spec.runtime or "docker")
    for _, spec in draft.of("vgpu_license"):
        _runs(found, spec.hosts, "nvidia-gridd")
        _has_gpus(found, spec.hosts, 1)
    if found:
        draft.parts["linux_machines"] = found


def _clients(draft: Draft, found: Machines) -> None:
    """Give the machines of clients the system that the package is made for, and the clients' users."""
    for _, spec in draft.of("bitfusion_client"):
        system = UBUNTU.search(spec.package.text)
        for name in spec.hosts:
            if system:
                found[name] |= {"os": "ubuntu", "version": f"{system[1]}.{system[2]}"}
            users = (*found[name]["users"], *(user.name for user in spec.users))
            found[name]["users"] = list(dict.fromkeys(users))


def _machine(draft: Draft, where: str, spec: Any) -> Entry:
    found: Entry = {"address": spec.address, "users": list(dict.fromkeys(("root", spec.user)))}
    if spec.port != SSH:
        found["port"] = spec.port
    if spec.password:
        if spec.password.way == "env":
            found["password"] = {"env": spec.password.target}
        else:
            draft.left_out[f"{where}: password"] = (
                f"the sandbox can't give {spec.password}: name an environment variable for it"
            )
    if spec.trust.sha256:
        draft.left_out[f"{where}: trust"] = (
            "the sandbox's machines have keys of their own: name a file with known_hosts"
        )
    return found


def _runs(machines: Machines, names: Iterable[str], service: str) -> None:
    for name in names:
        running = machines[name].setdefault("services", [])
        if f"{service}.service" not in running:
            running.append(f"{service}.service")


def _has_gpus(machines: Machines, names: Iterable[str], number: int) -> None:
    for name in names:
        machines[name]["gpus"] = ["16GiB"] * max(number, len(machines[name].get("gpus", ())))
