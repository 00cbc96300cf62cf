"""The desired state of a client image."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from bfinfra.kinds.capabilities import image
from bfinfra.kinds.client_files import ClientFiles
from bfinfra.model import conflict, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.errors import FieldError, Problem
from bfinfra.model.names import ImageName
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.sources import LocalFile, LocalOutput

IMAGE = r"^[a-z0-9][a-z0-9._:/-]*(@sha256:[0-9a-f]{64})?$"
PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~-]*\.(?:deb|rpm)")
SYSTEM = re.compile(r"bitfusion-client-(?P<system>ubuntu|centos)(?P<release>\d+)")
OTHERS = {
    ".deb": ("centos", "rockylinux", "almalinux", "fedora", "redhat", "ubi"),
    ".rpm": ("ubuntu", "debian"),
}

User = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
Home = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9._/-]*)?$")]


class Spec(resource.Spec):
    """The desired state of one client image."""

    awaits: ClassVar = {"package": "download the Bitfusion client's package from the vendor's site"}

    image: ImageName
    """Name and tag of the image, such as `172.24.206.3/cnasg/pytorch-mock-bitfusion:latest`."""
    base: Annotated[str, StringConstraints(pattern=IMAGE)]
    """Image to build on, such as the application's, Ubuntu or CentOS."""
    package: LocalFile
    """The Bitfusion client's package: .deb for Ubuntu, .rpm for CentOS."""
    context: LocalOutput
    """Folder for the Dockerfile and its files. bfinfra creates it, and removes only its own files."""
    token: Annotated[str, Ref("bitfusion_token")] | None = None
    """Token to bake in; empty if a token_secret mounts it."""
    client_files: ClientFiles | None = None
    """Instead of a token: a machine that the plug-in enabled, whose files are baked in."""
    authorization: Literal["baked", "mounted"] = "mounted"
    """baked: the token's files go into the image, as in the document; mounted: a token_secret brings them
    when a Pod runs.
    """
    users: dict[User, Home | None] = Field(default={"root": None}, min_length=1)
    """User → home of those who run Bitfusion in the image; empty home (nothing, null or "") = /root or
    /home/USER. The base image must have these users.
    """
    run_as: User | None = None
    """User that the image runs as; empty = root."""
    build: Literal["if_possible", "never"] = "if_possible"
    """if_possible: build if docker, podman or buildah works; never: only write the context and report the
    commands.
    """
    push: bool = True
    """Push the image after a build, with the account that the tool is logged in with."""

    @field_validator("package")
    @classmethod
    def _package(cls, file: LocalFile) -> LocalFile:
        if not PACKAGE.fullmatch(PurePosixPath(file.text).name):
            raise ValueError(
                "expected a .deb or .rpm file, such as "
                "downloads/bitfusion-client-ubuntu2004_3.0.0-11_amd64.deb"
            )
        return file

    @field_validator("users")
    @classmethod
    def _homes(cls, users: dict[str, str | None]) -> dict[str, str | None]:
        for user, home in users.items():
            if home is not None and ".." in PurePosixPath(home).parts:
                raise ValueError(f"{user}: expected an absolute path without ..")
        return users

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        if self.client_files and self.token:
            raise FieldError("give token or client_files, not both", "client_files")
        if self.client_files and not self.baked:
            raise FieldError(
                "a machine's files can only go into the image; write authorization: baked, or remove it",
                "client_files",
            )
        if self.baked and self.token is None and self.client_files is None:
            raise FieldError(
                "a baked token needs its name in token, or the machine that has its files in "
                "client_files; or write mounted",
                "authorization",
            )
        repository, _, tag = self.base.rpartition("/")[2].partition(":")
        suffix, made_for = (
            PurePosixPath(self.package.text).suffix,
            SYSTEM.match(PurePosixPath(self.package.text).name),
        )
        if repository in OTHERS[suffix]:
            raise FieldError(
                f"{self.base} can't install a {suffix} package; take the "
                f"{'.rpm' if suffix == '.deb' else '.deb'} package",
                "package",
            )
        release = re.match(r"[\d.]+", tag)
        if (
            made_for
            and release
            and repository == made_for["system"]
            and not _same(made_for["release"], release[0])
        ):
            raise FieldError(
                f"it is for {made_for['system']} {made_for['release']}, and the base is {self.base}",
                "package",
            )
        return self

    def warnings(self) -> Iterator[tuple[str, Problem]]:
        """A baked token can be read by everyone who can pull the image."""
        if self.baked:
            yield (
                "authorization",
                Problem(
                    "the token stays in the layers of the image",
                    why="whoever can pull it, or an image built on it, can read the token",
                    next="write authorization: mounted, add a token_secret, and name that in the workload",
                ),
            )

    def takes(self, name: str) -> Iterator[Taken]:
        """The image's name and the folder, which two resources can't both write."""
        yield conflict.thing("image", f"the image {self.image}", "image")
        yield conflict.thing("context", f"the folder {self.context.path}", "context")

    @property
    def baked(self) -> bool:
        """True if the token's files go into the image."""
        return self.authorization == "baked"

    @property
    def homes(self) -> dict[str, str]:
        """User → home."""
        return {
            user: home or ("/root" if user == "root" else f"/home/{user}")
            for user, home in self.users.items()
        }

    @property
    def package_name(self) -> str:
        """The package's file name."""
        return PurePosixPath(self.package.text).name

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The image."""
        yield image(self.image)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The image that it is built on."""
        yield image(self.base)


def _same(package: str, base: str) -> bool:
    """Return whether `2004` and `20.04`, or `7` and `7.9.2009`, are the same release."""
    plain = base.replace(".", "")
    return plain.startswith(package) or package.startswith(plain)
