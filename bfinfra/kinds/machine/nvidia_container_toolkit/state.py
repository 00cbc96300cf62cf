"""The live state of the toolkit on machines, and the commands that read it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.machine.base import (
    OnHosts,
    SoftwareFacts,
    read_record,
    record_commands,
    service,
    service_state,
    text_of,
)
from bfinfra.kinds.machine.nvidia_container_toolkit.runtime import FILES, UNITS, Before
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.resource import Spec

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

NAME = "nvidia_container_toolkit"


def look(program: str) -> dict[str, Sequence[str]]:
    """The commands for a machine."""
    found = record_commands(NAME, program) | {"containers": ("docker", "ps", "--quiet")}
    for runtime, path in FILES.items():
        found[runtime] = ("cat", path)
        found[f"{runtime} runs"] = service(UNITS[runtime])
    return found


@dataclass(frozen=True, slots=True)
class Installed:
    """The toolkit on one machine. `package`: digest of what was installed; `kept`: whether the program is
    still that one; `runtime`, `before`, `noted`: from its record. `configs`: text of each runtime's
    configuration, None if there is none; `services`: the state of each runtime's unit, "" if there is none.
    """

    mark: Mark | None
    package: str = ""
    kept: bool = False
    program: bool = False
    runtime: str = ""
    before: Before = field(default_factory=Before)
    noted: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    containers: bool = False

    @property
    def there(self) -> bool:
        """True if the machine has any of it."""
        return bool(self.mark or self.program)


class State(OnHosts[Installed]):
    """The toolkit on each of its machines."""

    def out_of_service(self, spec: Spec | None) -> str:
        """Return where its container runtime is stopped."""
        names = ", ".join(
            host
            for host, found in self.on.items()
            if found.services.get(found.runtime, "active") not in ("", "active")
        )
        return f"has its container runtime stopped on {names}" if names else ""


ToolkitFacts = SoftwareFacts[Installed]


def read(answers: Answers) -> Installed:
    """From a machine's answers."""
    record = read_record(answers, "form", "files", "runtime", "before")
    return Installed(
        mark=record.mark,
        package=record.stamp,
        kept=record.kept,
        program=record.program,
        runtime=record.noted.get("runtime", ""),
        before=Before.decode(_text(record.noted.get("before", ""))),
        noted=record.noted,
        configs={runtime: text_of(answers, runtime) for runtime in FILES},
        services={runtime: service_state(answers[f"{runtime} runs"]) for runtime in FILES},
        containers=answers["containers"].ok and bool(answers["containers"].text.strip()),
    )


def note(value: str) -> str:
    """A text as one word of a record."""
    return base64.b64encode(value.encode()).decode()


def _text(word: str) -> str:
    try:
        return base64.b64decode(word, validate=True).decode()
    except ValueError:
        return ""
