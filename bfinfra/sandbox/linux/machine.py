"""One Linux machine: its files, packages and services. Everything is data; nothing of it is run or touches
this machine.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

TMP = "/tmp"  # noqa: S108 - a path in the world
FOLDERS = (
    "/",
    "/etc",
    "/etc/modules-load.d",
    "/etc/sysctl.d",
    "/etc/systemd",
    "/etc/systemd/system",
    "/home",
    "/root",
    TMP,
    "/usr",
    "/usr/bin",
    "/usr/share",
    "/usr/share/doc",
    "/var",
    "/var/cache",
    "/var/lib",
)
PASSING = f"{TMP}/"
UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system")
DEBIANS = ("debian", "ubuntu")


@dataclass(frozen=True)
class Node:
    """A file, or a folder (`content` None)."""

    content: bytes | None
    mode: int = 0o644
    owner: str = "root"
    group: str = "root"


@dataclass
class Service:
    """A unit of systemd."""

    active: bool = False
    enabled: bool = False


@dataclass(frozen=True)
class Package:
    """An installed package and its files."""

    version: str
    files: tuple[str, ...] = ()


@dataclass
class Machine:
    """The state of a machine. `os`: id and version of os-release; `groups`: user → the groups besides its
    own; `gpus`: MiB of each GPU.
    """

    name: str
    os: tuple[str, str]
    gpus: tuple[int, ...] = ()
    users: tuple[str, ...] = ("root",)
    files: dict[str, Node] = field(default_factory=dict)
    packages: dict[str, Package] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    trial: bool = False
    """A copy to try something on: what is done on it has no effect elsewhere."""

    @classmethod
    def fresh(
        cls,
        name: str,
        os: tuple[str, str],
        gpus: tuple[int, ...],
        users: tuple[str, ...],
        services: tuple[str, ...] = (),
    ) -> Machine:
        """Reset the machine to its state after installation."""
        made = cls(
            name, os, gpus, users, services={unit: Service(active=True, enabled=True) for unit in services}
        )
        homes = [made.home(user) for user in users]
        made.files = {path: Node(None, 0o755) for path in (*FOLDERS, *homes)}
        release = f'ID={os[0]}\nVERSION_ID="{os[1]}"\nPRETTY_NAME="{os[0].title()} {os[1]}"\n'
        made.files["/etc/os-release"] = Node(release.encode())
        passwd = "".join(
            f"{user}:x:{number}:{number}::{made.home(user)}:/bin/bash\n" for number, user in _numbered(users)
        )
        made.files["/etc/passwd"] = Node(passwd.encode())
        return made

    @property
    def debian(self) -> bool:
        """True if it has dpkg; otherwise it has rpm."""
        return self.os[0] in DEBIANS

    @staticmethod
    def home(user: str) -> str:
        """Return the home folder of a user."""
        return "/root" if user == "root" else f"/home/{user}"

    def has_unit(self, unit: str) -> bool:
        """Return whether systemd has a file for this unit."""
        return any(f"{folder}/{unit}" in self.files for folder in UNITS)

    def read(self, path: str) -> bytes | None:
        """A file's content; None where it is none."""
        node = self.files.get(posixpath.normpath(path))
        return node.content if node else None

    def digest(self, path: str, algorithm: str = "sha256") -> str:
        """Of a file; "" where it is none."""
        content = self.read(path)
        return "" if content is None else hashlib.new(algorithm, content).hexdigest()

    def write(self, path: str, node: Node) -> str:
        """Put it there; why that can't be, or ""."""
        path = posixpath.normpath(path)
        above = self.files.get(posixpath.dirname(path))
        if above is None or above.content is not None:
            return f"{posixpath.dirname(path)} does not exist"
        self.files[path] = node
        return ""

    def below(self, path: str) -> Iterator[str]:
        """All that is in a folder, at any depth."""
        start = posixpath.normpath(path).rstrip("/") + "/"
        return (each for each in list(self.files) if each.startswith(start))

    def remove(self, path: str) -> bool:
        """Remove a path and all below it; returns whether it existed."""
        for each in self.below(path):
            del self.files[each]
        return self.files.pop(posixpath.normpath(path), None) is not None

    def copy(self) -> Machine:
        """Another one just like it, to try something on."""
        services = {name: Service(**asdict(each)) for name, each in self.services.items()}
        return Machine(
            self.name,
            self.os,
            self.gpus,
            self.users,
            dict(self.files),
            dict(self.packages),
            services,
            dict(self.groups),
            trial=True,
        )

    def save(self) -> dict[str, Any]:
        """The state as JSON values."""
        files = {
            path: {
                **asdict(node),
                "content": None if node.content is None else base64.b64encode(node.content).decode(),
            }
            for path, node in self.files.items()
        }
        return {
            "files": files,
            "packages": {name: asdict(each) for name, each in self.packages.items()},
            "services": {name: asdict(each) for name, each in self.services.items()},
            "groups": {user: list(each) for user, each in self.groups.items()},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Load what `save` returned."""
        self.files = {
            path: Node(
                **{**node, "content": None if node["content"] is None else base64.b64decode(node["content"])}
            )
            for path, node in data["files"].items()
        }
        self.packages = {
            name: Package(each["version"], tuple(each["files"])) for name, each in data["packages"].items()
        }
        self.services = {name: Service(**each) for name, each in data["services"].items()}
        self.groups = {user: tuple(each) for user, each in data["groups"].items()}

    def dump(self) -> dict[str, Any]:
        """For people and comparisons; without what passes."""
        files = {
            path: _shown(node.content)
            for path, node in sorted(self.files.items())
            if not path.startswith(PASSING)
        }
        modes = {
            path: f"{node.mode:04o} {node.owner} {node.group}"
            for path, node in sorted(self.files.items())
            if not path.startswith(PASSING)
        }
        saved = self.save()
        return {
            "files": files,
            "modes": modes,
            "packages": saved["packages"],
            "services": saved["services"],
            "groups": saved["groups"],
        }


def _numbered(users: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    return ((0 if user == "root" else 1000 + number, user) for number, user in enumerate(users))


def _shown(content: bytes | None) -> str:
    if content is None:
        return "folder"
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"SHA-256 {hashlib.sha256(content).hexdigest()}"
