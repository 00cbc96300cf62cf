"""The desired state of a loaded image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from bfinfra.backends.images import full_name
from bfinfra.kinds.capabilities import image
from bfinfra.kinds.machine.loaded_image.runtime import Runtime
from bfinfra.model import conflict, resource
from bfinfra.model.choice import each_once, one_of
from bfinfra.model.conflict import Conflict, Spot, Taken
from bfinfra.model.errors import FieldError
from bfinfra.model.names import ImageName
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key, Ref
from bfinfra.model.sources import LocalFile

BUILDERS = ("container_image", "client_image")


class Spec(resource.Spec):
    """The desired state of one image."""

    name_pattern = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
    name_rule = "lower case letters, digits and dashes, at most 63"

    awaits: ClassVar = {"archive": "write it with docker save where the image is"}

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines, such as the nodes of a cluster. They need a container runtime."""
    built: Annotated[str, Ref(*BUILDERS)] | None = None
    """A container_image or client_image of this site: bfinfra saves it where it is built, and loads it from
    there. No registry is needed: write push: false there.
    """
    archive: LocalFile | None = None
    """A tar archive from `docker save` or `podman save`, instead of built."""
    image: ImageName | None = None
    """Name and tag of the image in the archive, as pods name it."""
    runtime: Runtime | None = None
    """The container runtime that gets it; empty = the one that the machine's kubelet uses, else the first
    that answers of docker, containerd and podman. For CRI-O write podman.
    """

    @model_validator(mode="after")
    def _one_source(self) -> Spec:
        each_once("hosts", self.hosts)
        one_of(built=self.built, archive=self.archive)
        if (self.archive is None) != (self.image is None):
            if self.image:
                raise FieldError("it goes with archive, which may contain several", "image")
            raise FieldError("give its image by name, too", "archive")
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """The image on its machines."""
        what = self.image or f"that {self.built} is"
        yield from (
            conflict.thing(f"hosts.{index}", f"the image {what} on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    def named(self, site: Specs) -> str:
        """The image's name, "" if no resource of the site builds it."""
        built = next((site[key] for each in BUILDERS if (key := Key(each, self.built or "")) in site), None)
        return self.image or (str(built.image) if built else "")

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The image."""
        if found := self.named(site):
            yield image(found)

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """A tag that pods pull from a registry in any case."""
        for key, spec in mine.items():
            if (found := spec.named(site)) and full_name(found).endswith(":latest"):
                yield Conflict(
                    Spot(key, "image" if spec.image else "built"),
                    f"pods pull {found} all the same",
                    why="for the tag latest Kubernetes takes imagePullPolicy Always",
                    next="give the image a tag of its own, or the pods imagePullPolicy IfNotPresent",
                    stops=False,
                )
