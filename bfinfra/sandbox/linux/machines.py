"""All Linux machines of a world: each behind its SSH port. Its calls are counted, and fault rules apply to
them, as on every other server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.faults import Faults, Interrupted
from bfinfra.sandbox.linux import gpus
from bfinfra.sandbox.linux.kubeadm import Kubernetes
from bfinfra.sandbox.linux.machine import Machine, Node
from bfinfra.sandbox.linux.node import NodeMachine
from bfinfra.sandbox.linux.programs import Programs
from bfinfra.sandbox.linux.shell import Call, parse
from bfinfra.sandbox.linux.ssh import SshLogin, SshPort
from bfinfra.sandbox.reading import BadWorld

if TYPE_CHECKING:
    from bfinfra.sandbox.pki import Pki
    from bfinfra.sandbox.tally import Tally
    from bfinfra.sandbox.world_outside import LinuxMachine

MIB = 2**20
NAME = "ssh"
PASSING = ("put", "folder", "clear", "chmod", "read", "refused")
"""The commands that Ansible's connection runs around a module. They write only below /tmp."""


class LinuxMachines:
    """The world's `linux_machines`, by name."""

    def __init__(  # noqa: PLR0913 - the world's parts
        self,
        written: Mapping[str, LinuxMachine],
        pki: Pki,
        faults: Faults,
        tally: Tally,
        bitfusion: Callable[[], Mapping[str, Sequence[int]]],
        kubernetes: Kubernetes | None = None,
    ) -> None:
        self._written, self._pki, self._faults, self._tally = written, pki, faults, tally
        self._lock = threading.RLock()
        self._kubernetes = kubernetes or Kubernetes()
        self._programs = Programs(
            self._serving,
            bitfusion,
            self._kubernetes,
            lambda: frozenset(each.address for each in written.values()),
        )
        self.all = {name: _fresh(name, each) for name, each in written.items()}
        self.ports: dict[str, int] = {}

    def node(self, name: str) -> NodeMachine | None:
        """The machine of this name, as a cluster's node."""
        machine = self.all.get(name)
        return NodeMachine(machine, self._serving) if machine else None

    def open(self) -> None:
        """Start to listen: `address:port` → the port on loopback. Raises BadWorld if SSH's library is not
        installed.
        """
        if self._written and find_spec("asyncssh") is None:
            raise BadWorld('its Linux machines need bfinfra[sandbox]: pip install "bfinfra[sandbox]"')
        for name, each in self._written.items():
            passwords = {user: str(each.password) for user in each.users if each.password}
            login = SshLogin(
                self._pki.ssh_key(f"host-{name}"),
                self._pki.ssh_public("client"),
                passwords,
                each.users,
                self._answering(name),
            )
            self.ports[f"{each.address}:{each.port}"] = SshPort(login).port

    def reset(self) -> None:
        """Reset all machines to their state at the start."""
        with self._lock:
            self.all = {name: _fresh(name, each) for name, each in self._written.items()}

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart."""
        return {name: each.save() for name, each in self.all.items()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Load what `save` returned."""
        for name, each in self.all.items():
            if name in data:
                each.restore(data[name])

    def dump(self) -> dict[str, Any]:
        """By name."""
        with self._lock:
            return {name: each.dump() for name, each in self.all.items()}

    def put(self, name: str, path: str, text: str | None) -> None:
        """Write a file as a user of the machine would, with its folders; None removes it. It is not counted.
        Raises KeyError if there is no such machine.
        """
        with self._lock:
            machine = self.all[name]
            if text is None:
                machine.remove(path)
                self._kubernetes.follow(self.all)
                return
            for above in reversed(PurePosixPath(path).parents):
                machine.files.setdefault(str(above), Node(None, 0o755))
            machine.files[path] = Node(text.encode(), 0o755 if "/bin/" in path else 0o644)
            self._kubernetes.follow(self.all)

    def _answering(self, name: str) -> Callable[[str, bytes, str], tuple[str, int] | None]:
        def answer(line: str, stdin: bytes, user: str) -> tuple[str, int] | None:
            call = parse(line, stdin, user, self._programs)
            try:
                return self._counted(name, call)
            except Interrupted:
                return None

        return answer

    def _counted(self, name: str, call: Call) -> tuple[str, int]:
        """Tried on a copy first: whether it writes is known before its fault rules are asked."""
        with self._lock:
            trial = self.all[name].copy()
            call.act(trial)
            writes = call.name not in PASSING and trial.save() != self.all[name].save()
        self._tally.count(NAME, call.name, writes=writes)
        with self._faults.during(NAME, call.name, name, writes=writes) as effect:
            if effect.message:
                return f"{effect.message}\n", 1
            with self._lock:
                done = call.act(self.all[name])
                if writes:
                    self._kubernetes.follow(self.all)
        return done.text, done.code

    def _serving(self) -> dict[str, Machine]:
        found = (
            (gpus.serving(machine, self._written[name].address), machine)
            for name, machine in self.all.items()
        )
        return {address: machine for address, machine in found if address}


def _fresh(name: str, written: LinuxMachine) -> Machine:
    return Machine.fresh(
        name,
        (written.os, written.version),
        tuple(size // MIB for size in written.gpus),
        written.users,
        written.services,
    )
