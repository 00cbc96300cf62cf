"""The part of a workload's spec that the device plug-in's checks read."""

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
        """The way in which the workload gets its GPUs."""

    @property
    def gpus(self) -> int | None:
        """The number of GPUs."""

    @property
    def fraction(self) -> float | None:
        """Share of each GPU's memory."""

    @property
    def gpu_memory(self) -> int | None:
        """Memory on each GPU, in bytes."""

    @property
    def client(self) -> ClientPackage | None:
        """Client package for its pods."""

    @property
    def filters(self) -> Sequence[str]:
        """Filters that select servers."""
