"""The steps of a client image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.model.compare import Unknown
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use
from bfinfra.model.ssh import LinuxMachine
from bfinfra.model.step import Step


@dataclass(frozen=True, kw_only=True)
class Render(Step):
    """write the Dockerfile and its files to {context}"""

    rights = ()
    context: str
    mark: Mark
    dockerfile: str = field(repr=False)
    package: str
    token: str | Unknown = ""
    """Path of the token to bake in."""
    giver: LinuxMachine | None = None
    """The machine that has the client's files, instead of a token."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The paths of those files on the machine, by their names in a token."""
    files: Mapping[str, str | Unknown]
    """Name → SHA-256."""


@dataclass(frozen=True, kw_only=True)
class Build(Step):
    """build {image} with {tool}"""

    rights = ()
    context: str
    mark: Mark
    image: str
    tool: str
    content: str | Unknown


@dataclass(frozen=True, kw_only=True)
class Push(Step):
    """push {image}"""

    rights = ()
    context: str
    mark: Mark
    image: str
    content: str | Unknown


@dataclass(frozen=True, kw_only=True)
class Commit(Step):
    """note that {context} is complete"""

    rights = ()
    context: str
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """remove what bfinfra wrote to {context}; images stay in the registry"""

    rights = ()
    uses = (Use.DESTROY,)
    context: str
    address: str
