"""How the toolkit stands on machines, and what is looked at to know."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.linux import OnHosts, first_word, service, service_state
from bfinfra.kinds.machine.nvidia_container_toolkit.runtime import FILES, UNITS, Before
from bfinfra.model.awaited import Away
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.ssh import LinuxMachine

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

RECORD = "/var/lib/bfinfra/nvidia_container_toolkit"


def look(program: str) -> dict[str, tuple[str, ...]]:
    """What is asked of a machine."""
    found: dict[str, tuple[str, ...]] = {
        "record": ("cat", RECORD),
        "package": ("cat", f"{RECORD}.package"),
        "program": ("sha256sum", program),
        "containers": ("docker", "ps", "--quiet"),
    }
    for runtime, path in FILES.items():
        found[runtime] = ("cat", path)
        found[f"{runtime} runs"] = service(UNITS[runtime])
    return found


@dataclass(frozen=True, slots=True)
class Installed:
    """The toolkit on one machine. `package`: digest of what was installed; `kept`: the program is still that
    one; `runtime`, `before`, `noted`: as its record says.

    `configs`: text of each runtime's configuration, None where there is none; `services`: how each runtime's
    unit stands, "" where there is none.
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
        """Whether there is anything of it."""
        return bool(self.mark or self.program)


class State(OnHosts[Installed]):
    """How it stands on machines."""


@dataclass(frozen=True)
class ToolkitFacts:
    """`machines`: all that answered, and how each stands; `packages`: by resource, digest of what is to be
    installed, "" where it can't be read.
    """

    machines: Mapping[str, LinuxMachine]
    found: Mapping[str, Installed]
    packages: Mapping[str, str]
    away: Mapping[str, Away] = field(default_factory=dict)
    """By resource: the package that isn't there yet."""


def read(answers: Answers) -> Installed:
    """From what a machine said."""
    record = answers["record"].text if answers["record"].ok else ""
    noted = dict(
        line.split("=", 1)
        for line in record.splitlines()
        if line.startswith(("form=", "files=", "runtime=", "before="))
    )
    stamped = answers["package"].text.split() if answers["package"].ok else []
    program = first_word(answers["program"])
    return Installed(
        mark=Mark.decode(record),
        package=stamped[0] if len(stamped) == 2 else "",
        kept=len(stamped) == 2 and stamped[1] == program,
        program=bool(program),
        runtime=noted.get("runtime", ""),
        before=Before.decode(_text(noted.get("before", ""))),
        noted=noted,
        configs={runtime: answers[runtime].text if answers[runtime].ok else None for runtime in FILES},
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
