"""The live state of FlexDirect on machines, and the commands that read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.machine.base import OnHosts, SoftwareFacts, read_record, record_commands, text_of
from bfinfra.model.awaited import Away
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.resource import Spec

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

NAME = "flexdirect_host"
UNIT = "flexdirect-scheduler.service"
LOOK = {
    **record_commands(NAME, "/usr/bin/flexdirect"),
    "license": ("sha256sum", "/etc/bitfusionio/lic/host_id"),
    "unit": ("cat", f"/etc/systemd/system/{UNIT}"),
    "service": ("systemctl", "show", "--property=ActiveState,UnitFileState", UNIT),
}


@dataclass(frozen=True, slots=True)
class Installed:
    """FlexDirect on one machine. `package`: SHA-256 of the installed package, "" if the program is missing or
    another; `license`: digest of the license that it was given; `file`: name of the package. `uninstall`: the
    command that uninstalls the program, if an installer installed it.
    """

    mark: Mark | None
    package: str = ""
    program: bool = False
    licensed: bool = False
    license: str = ""
    file: str = ""
    uninstall: tuple[str, ...] = ()
    unit: str = ""
    service: str = ""

    @property
    def there(self) -> bool:
        """True if the machine has any of it."""
        return bool(self.mark or self.program or self.unit)


class State(OnHosts[Installed]):
    """FlexDirect on each of its machines."""

    def out_of_service(self, spec: Spec | None) -> str:
        """Return where its scheduler is stopped."""
        names = ", ".join(
            host for host, found in self.on.items() if found.unit and found.service == "stopped"
        )
        return f"has its scheduler stopped on {names}" if names else ""


@dataclass(frozen=True)
class FlexDirectHostFacts(SoftwareFacts[Installed]):
    """In addition, by resource: `licensed`: machines that have the present license; by machine: `os`:
    distribution and version.
    """

    licensed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    os: Mapping[str, str] = field(default_factory=dict)
    unlicensed: Mapping[str, Away] = field(default_factory=dict)
    """By resource: the license whose file doesn't exist yet; machines that have a license then count as up to
    date.
    """


def read(answers: Answers) -> Installed:
    """From a machine's answers."""
    record = read_record(answers, "license", "package", "uninstall")
    shown = dict(line.split("=", 1) for line in answers["service"].text.splitlines() if "=" in line)
    service = {("active", "enabled"): "running", ("active", "disabled"): "running, not enabled"}.get(
        (shown.get("ActiveState", ""), shown.get("UnitFileState", "")), "stopped"
    )
    return Installed(
        mark=record.mark,
        package=record.package,
        program=record.program,
        licensed=answers["license"].ok,
        license=record.noted.get("license", ""),
        file=record.noted.get("package", ""),
        uninstall=_words(record.noted.get("uninstall", "")),
        unit=text_of(answers, "unit") or "",
        service=service,
    )


def _words(text: str) -> tuple[str, ...]:
    """The words of a command in a record; none if it is damaged."""
    try:
        found = json.loads(text) if text else ()
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
