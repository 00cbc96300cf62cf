"""The facts about its surroundings that a cluster needs. The sandbox's process provides them; tests provide
those that they need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol

from bfinfra.sandbox.handler import Handler
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.kubernetes.plugins import KUBELET_FOLDER


class GpuServer(Protocol):
    """A Bitfusion server as its clients see it."""

    @property
    def uuid(self) -> str:
        """Its own id."""

    @property
    def version(self) -> str:
        """Its release and build."""

    @property
    def memory(self) -> tuple[int, ...]:
        """MiB of each GPU."""


class Host(Protocol):
    """A machine that is a node, as FlexDirect finds it."""

    @property
    def installed(self) -> bool:
        """The program is there."""

    @property
    def licensed(self) -> bool:
        """`flexdirect init` has run."""

    def folder(self, path: str) -> bool:
        """Return whether the node has this folder."""

    def read(self, path: str) -> str | None:
        """A file's content; None where there is none."""

    def has_image(self, name: str) -> bool:
        """Return whether an image of this name is there, so that it is not pulled."""

    def servers(self) -> Mapping[str, GpuServer]:
        """The GPU servers whose schedulers listen, by "ip:port"."""

    def health(self) -> list[str]:
        """The lines of its health check."""


@dataclass(frozen=True)
class Person:
    """A logged-in user. `name` and `groups` as user@domain; `admin` may do everything."""

    name: str
    groups: tuple[str, ...] = ()
    admin: bool = False


class ImageRegistry(Protocol):
    """An image registry that asks for credentials."""

    @property
    def username(self) -> str:
        """The user that may pull."""

    @property
    def password(self) -> Any:
        """The user's password."""


class Work(Protocol):
    """The behaviour of an image's container: its output, how long it runs, how it ends."""

    @property
    def output(self) -> str | None:
        """The text; None for what its kind prints by default."""

    @property
    def seconds(self) -> float | None:
        """The time for which it runs, in seconds; None for the usual time."""

    @property
    def exit_code(self) -> int:
        """Its exit code."""


class MachineClass(Protocol):
    """A virtual machine class. `memory` in bytes."""

    @property
    def cpus(self) -> int:
        """Virtual CPUs."""

    @property
    def memory(self) -> int:
        """Bytes."""

    @property
    def gpus(self) -> int:
        """Its GPUs: vGPUs and whole cards."""


def _no_port(address: str, handler: Handler, name: str = "") -> int:
    raise RuntimeError(f"nothing opens {address} ({name}) here: {handler}")


@dataclass(frozen=True)
class Outside:
    """Durations in seconds by what takes them; callbacks into the rest of the sandbox."""

    durations: Mapping[str, float] = field(default_factory=dict)
    ca_pem: str = ""
    registries: Mapping[str, ImageRegistry] = field(default_factory=dict)
    images: Mapping[str, Work] = field(default_factory=dict)  # image name or glob → what it does
    kubelet_folders: Mapping[str, str] = field(
        default_factory=dict
    )  # node or glob → its kubelet's folder, where that is another
    gpu_server: Callable[[str], GpuServer | None] = lambda _: (
        None
    )  # "ip:port" → the server that answers there
    gpu_servers: Callable[[], Mapping[str, GpuServer]] = dict  # all that are up, by "ip:port"
    gpus: Callable[[str], Gpus] = lambda _: Gpus()  # those of a node, by its name
    host: Callable[[str], Host | None] = lambda _: None  # the world's machine of a node
    serves: Callable[[str], bool] = lambda _: False  # whether anything listens at "ip:port"
    login: Callable[[str, str], Person | None] = lambda _name, _password: None
    machine_classes: Callable[[], Mapping[str, MachineClass]] = dict
    power_on: Callable[[str, str], str] = lambda _holder, _vm_class: (
        ""
    )  # gives a machine the GPUs of its class; why not, or ""
    power_off: Callable[[str], None] = lambda _holder: (
        None
    )  # takes a machine's GPUs, or those of all of "holder/"
    devices: Callable[[str], Gpus] = lambda _holder: Gpus()  # the GPUs that a machine holds
    open: Callable[[str, Handler, str], int] = _no_port
    close: Callable[[str], None] = lambda _: None

    def kubelet_folder(self, node: str) -> str:
        """The folder of a node's kubelet."""
        return next(
            (folder for name, folder in self.kubelet_folders.items() if fnmatchcase(node, name)),
            KUBELET_FOLDER,
        )
