"""How FlexDirect stands on machines, and what is looked at to know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.linux import OnHosts
from bfinfra.model.awaited import Away
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.ssh import LinuxMachine

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

UNIT = "flexdirect-scheduler.service"
RECORD = "/var/lib/bfinfra/flexdirect_host"
LOOK = {
    "record": ("cat", RECORD),
    "package": ("cat", f"{RECORD}.package"),
    "program": ("sha256sum", "/usr/bin/flexdirect"),
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
class FlexDirectHostFacts:
    """`machines`: all that answered. By resource: `packages`: SHA-256 of the file, "" where it can't be read;
    `licensed`: machines that have the license as it is now.

    `os`: distribution and version, by machine.
    """

    machines: Mapping[str, LinuxMachine]
    packages: Mapping[str, str]
    licensed: Mapping[str, frozenset[str]]
    os: Mapping[str, str] = field(default_factory=dict)
    away: Mapping[str, Away] = field(default_factory=dict)
    """By resource: the package that isn't there yet."""
    unlicensed: Mapping[str, Away] = field(default_factory=dict)
    """By resource: the license whose file isn't there yet; machines that were given one then have the one
    that is wanted.
    """


def read(answers: Answers) -> Installed:
    """From what a machine said."""
    record = answers["record"].text if answers["record"].ok else ""
    stamped = answers["package"].text.split() if answers["package"].ok else []
    program = answers["program"].text.split()[0] if answers["program"].ok else ""
    noted = dict(
        line.split("=", 1)
        for line in record.splitlines()
        if line.startswith(("license=", "package=", "uninstall="))
    )
    shown = dict(line.split("=", 1) for line in answers["service"].text.splitlines() if "=" in line)
    service = {("active", "enabled"): "running", ("active", "disabled"): "running, not enabled"}.get(
        (shown.get("ActiveState", ""), shown.get("UnitFileState", "")), "stopped"
    )
    return Installed(
        mark=Mark.decode(record),
        package=stamped[0] if len(stamped) == 2 and stamped[1] == program else "",
        program=bool(program),
        licensed=answers["license"].ok,
        license=noted.get("license", ""),
        file=noted.get("package", ""),
        uninstall=_words(noted.get("uninstall", "")),
        unit=answers["unit"].text if answers["unit"].ok else "",
        service=service,
    )


def _words(text: str) -> tuple[str, ...]:
    """Of a command in a record; none where somebody spoiled it."""
    try:
        found = json.loads(text) if text else ()
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
