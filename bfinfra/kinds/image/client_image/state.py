"""What stands on this machine for a client image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.kinds.image.base import Made
from bfinfra.model.awaited import Absent
from bfinfra.model.records import dataclass
from bfinfra.model.ssh import LinuxMachine


@dataclass(frozen=True, kw_only=True)
class State(Made):
    """A rendered context. `files`: name → SHA-256 as they stand."""

    context: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class ClientImageFacts:
    """What builds here, or why nothing does. By resource: `read`: name → SHA-256 of the files that are copied
    in; `problems`, Absent for a package that isn't there yet.

    `machines`: those that answered, by name.
    """

    tool: str = ""
    why: str = ""
    read: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problems: Mapping[str, str | Absent] = field(default_factory=dict)
    machines: Mapping[str, LinuxMachine] = field(default_factory=dict)
