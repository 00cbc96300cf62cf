"""The desired state of NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import TOOLKIT, on_machines
from bfinfra.model import conflict, resource
from bfinfra.model.choice import each_once, one_of
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import RemotePath

Runtime = Literal["docker", "containerd"]
FORMS = {".list": "deb", ".sources": "deb", ".deb": "deb", ".repo": "rpm", ".rpm": "rpm"}
FOLDERS = {"deb": "/etc/apt/sources.list.d", "rpm": "/etc/yum.repos.d"}
Package = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9+._-]{0,99}$")]
Version = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+:~-]{0,99}$")]


class Repository(Part):
    """A package repository of NVIDIA, or a mirror of it."""

    file: LocalFile
    """Its .list or .sources for apt, its .repo for yum."""
    key: LocalFile | None = None
    """The key that its packages are signed with, if the file refers to it."""
    key_path: RemotePath = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
    """Path of that key on the machine."""
    package: Package = "nvidia-container-toolkit"
    """Packages to install from it."""
    version: Version | None = None
    """Their version; empty = the newest, but an installed version stays."""


class Spec(resource.Spec):
    """The desired state of machines that are alike."""

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines. They need the container runtime."""
    awaits: ClassVar = dict.fromkeys(
        ("packages", "repository.file", "repository.key"), "download it from NVIDIA, or from your mirror"
    )

    packages: tuple[LocalFile, ...] = ()
    """The toolkit's .deb or .rpm files with everything that they need; they are installed together."""
    repository: Repository | None = None
    """A repository to install it from, instead of packages."""
    runtime: Runtime = "docker"
    """The container runtime that uses it: docker (/etc/docker/daemon.json) or containerd
    (/etc/containerd/config.toml).
    """
    default: bool = True
    """Use it for all containers, as pods with GPUs need it without a RuntimeClass."""
    program: RemotePath = "/usr/bin/nvidia-container-runtime"
    """The program that the container runtime starts."""

    @model_validator(mode="after")
    def _one_way(self) -> Spec:
        each_once("hosts", self.hosts)
        one_of(packages=self.packages or None, repository=self.repository)
        forms = {PurePath(each.text).suffix for each in self.files()}
        if len({FORMS.get(suffix) for suffix in forms}) != 1 or not forms <= FORMS.keys():
            raise FieldError(
                "packages are all .deb or all .rpm; a repository is a .list, .sources or .repo",
                "packages" if self.packages else "repository",
            )
        if self.repository and next(iter(forms)) in (".deb", ".rpm"):
            raise FieldError("it is a .list, .sources or .repo; packages go under packages", "repository")
        if self.packages and not forms <= {".deb", ".rpm"}:
            raise FieldError("packages are .deb or .rpm; a repository goes under repository", "packages")
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its machines, with one toolkit each."""
        yield from (
            conflict.thing(f"hosts.{index}", f"the NVIDIA container toolkit on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    def brought(self) -> dict[str, LocalFile]:
        """The files by their dotted fields, with the repository's key."""
        found = {f"packages.{index}": file for index, file in enumerate(self.packages)}
        if self.repository:
            found["repository.file"] = self.repository.file
        if self.repository and self.repository.key:
            found["repository.key"] = self.repository.key
        return found

    def files(self) -> tuple[LocalFile, ...]:
        """The files to send: packages, or the repository's file."""
        return self.packages or ((self.repository.file,) if self.repository else ())

    @property
    def form(self) -> str:
        """`deb` or `rpm`."""
        return FORMS[PurePath(self.files()[0].text).suffix]

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The machines' GPUs in containers, and a container runtime that is not restarted later."""
        return on_machines(TOOLKIT, self.hosts)
