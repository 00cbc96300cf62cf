"""What of a workload's spec its checks by the device plug-in look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bfinfra.model.resource import Part
from bfinfra.model.sources import LocalFile


class ClientPackage(Part):
    """The client package that the device plug-in gives the pods."""

    os: str
    """The system of the image, as the plug-in's release names it: ubuntu20."""
    version: str
    """The client's version, as the plug-in's release names it: "450"."""


class Request(Protocol):
    """A workload's request for remote GPUs; its Spec is one."""

    @property
    def cluster(self) -> str:
        """Cluster that it runs in."""

    @property
    def namespace(self) -> str | None:
        """Namespace there."""

    @property
    def manifest(self) -> LocalFile:
        """File with its manifests."""

    @property
    def by(self) -> str:
        """How its GPUs come to it."""

    @property
    def gpus(self) -> int | None:
        """How many."""

    @property
    def fraction(self) -> float | None:
        """Share of the memory of each."""

    @property
    def gpu_memory(self) -> int | None:
        """Memory on each, bytes."""

    @property
    def client(self) -> ClientPackage | None:
        """Client package for its pods."""

    @property
    def filters(self) -> Sequence[str]:
        """Which servers will do."""
