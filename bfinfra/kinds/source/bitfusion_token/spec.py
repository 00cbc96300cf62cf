"""The desired state of a Bitfusion client token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import model_validator

from bfinfra.kinds.capabilities import SERVERS
from bfinfra.model import resource
from bfinfra.model.choice import one_of
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.sources import LocalFile


class Source(Part):
    """The place of the token: the tar as downloaded, or a folder with its files."""

    tar: LocalFile | None = None
    """The tar as downloaded."""
    folder: LocalFile | None = None
    """A folder with the three files and nothing else."""

    @model_validator(mode="after")
    def _one(self) -> Source:
        one_of(tar=self.tar, folder=self.folder)
        return self

    @property
    def file(self) -> LocalFile:
        """The tar or the folder, whichever is given."""
        file = self.tar or self.folder
        assert file is not None
        return file

    @property
    def field(self) -> str:
        """The dotted field that names it."""
        return "source.tar" if self.tar else "source.folder"

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.file.path


WHERE = (
    "once the Bitfusion server runs, open vCenter, Bitfusion in the Plugins section, Tokens; "
    "select an enabled token (NEW TOKEN makes one), DOWNLOAD"
)
"""(Bitfusion on Kubernetes, Get Baremetal Token for authorization; Singapore PoC, figure 4.)"""


class Spec(resource.Spec):
    """The desired state of one token. bfinfra never prints its content."""

    awaits: ClassVar = {"source.tar": f"{WHERE} its tar", "source.folder": f"{WHERE} its tar, unpack it"}

    source: Source
    """Where the token is. It may appear later, once the server that issues it runs: whatever needs the token
    waits.
    """
    servers: tuple[Annotated[str, Ref("bitfusion_server")], ...] = ()
    """Servers of this site that the token leads to. Whatever uses the token waits for them, and the token
    must contain their addresses.
    """

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """All servers of the site, if the spec doesn't name any: there is no token before a server runs."""
        if not self.servers:
            yield SERVERS
