"""The state of a client image on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.kinds.image.base import Made
from bfinfra.model.awaited import Absent
from bfinfra.model.records import dataclass
from bfinfra.model.ssh import LinuxMachine


@dataclass(frozen=True, kw_only=True)
class State(Made):
    """A context that was written. `files`: name → SHA-256 of the live files."""

    context: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class ClientImageFacts:
    """The tool that builds here, or why there is none. By resource: `read`: name → SHA-256 of the files to
    copy in; `problems`, Absent for a package that doesn't exist yet. `machines`: those that answered, by
    name.
    """

    tool: str = ""
    why: str = ""
    read: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problems: Mapping[str, str | Absent] = field(default_factory=dict)
    machines: Mapping[str, LinuxMachine] = field(default_factory=dict)
