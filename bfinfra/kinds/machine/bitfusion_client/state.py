"""The live state of a client on machines, and the commands that read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from bfinfra.kinds.linux import Answers
from bfinfra.kinds.machine.base import OnHosts, SoftwareFacts, read_record, record_commands
from bfinfra.kinds.machine.bitfusion_client.spec import Spec
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

NAME = "bitfusion_client"
SHARED = {"ca.crt": "/etc/bitfusion/tls/ca.crt", "servers.conf": "/etc/bitfusion/servers.conf"}
"""Files of the token that all users of a machine share."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The client on one machine. `package`: SHA-256 of the installed package, "" if the program is missing or
    another; `files`: path → SHA-256; `members`: users in the group.
    """

    mark: Mark | None
    package: str = ""
    program: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    noted: Mapping[str, str] = field(default_factory=dict)

    @property
    def there(self) -> bool:
        """True if the machine has any of it."""
        return bool(self.mark or self.program)


class State(OnHosts[Installed]):
    """The client on each of its machines."""


@dataclass(frozen=True)
class BitfusionClientFacts(SoftwareFacts[Installed]):
    """In addition, by resource: `tokens`: name → SHA-256 of each of the token's files."""

    tokens: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def look(host: str, specs: Sequence[Spec]) -> dict[str, Sequence[str]]:
    """The commands for a machine, for all resources that name it."""
    users = [user for spec in specs if host in spec.hosts for user in spec.users]
    files = (*SHARED.values(), *(f"{user.folder}/client.yaml" for user in users))
    given = {
        title: command
        for spec in specs
        if spec.client_files and host == spec.client_files.host
        for title, command in spec.client_files.commands.items()
    }
    return (
        record_commands(NAME, "/usr/bin/bitfusion")
        | {"files": ("sha256sum", "--", *files)}
        | {f"member {user.name}": ("id", "-Gn", "--", user.name) for user in users if user.name != "root"}
        | given
    )


def read(answers: Answers) -> Installed:
    """From a machine's answers."""
    record = read_record(answers, "package", "folders", "token")
    lines = (line.split(None, 1) for line in answers["files"].text.splitlines())
    files = {words[1].strip(): words[0] for words in lines if len(words) == 2 and len(words[0]) == 64}
    members = frozenset(
        f"{name.removeprefix('member ')} {group}"
        for name, answer in answers.items()
        if name.startswith("member ") and answer.ok
        for group in answer.text.split()
    )
    return Installed(
        mark=record.mark,
        package=record.package,
        program=record.program,
        files=files,
        members=members,
        noted=record.noted,
    )
