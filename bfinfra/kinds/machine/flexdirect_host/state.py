"""How FlexDirect stands on machines, and what is looked at to know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.machine.base import OnHosts, SoftwareFacts, read_record, record_commands, text_of
from bfinfra.model.awaited import Away
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

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
    """FlexDirect on one machine. `package`: SHA-256 of what was installed, "" where the program is gone or
    another; `license`: digest of the one it was given; `file`: name of the package.

    `uninstall`: the command that takes the program away, where it came with an installer.
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
        """Whether there is anything of it."""
        return bool(self.mark or self.program or self.unit)


class State(OnHosts[Installed]):
    """How it stands on machines."""


@dataclass(frozen=True)
class FlexDirectHostFacts(SoftwareFacts[Installed]):
    """Besides, by resource: `licensed`: machines that have the license as it is now; by machine: `os`:
    distribution and version.
    """

    licensed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    os: Mapping[str, str] = field(default_factory=dict)
    unlicensed: Mapping[str, Away] = field(default_factory=dict)
    """By resource: the license whose file isn't there yet; machines that were given one then have the one
    that is wanted.
    """


def read(answers: Answers) -> Installed:
    """From what a machine said."""
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
    """Of a command in a record; none where somebody spoiled it."""
    try:
        found = json.loads(text) if text else ()
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
