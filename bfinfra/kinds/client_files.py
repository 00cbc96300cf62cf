"""The Bitfusion client's files on a machine whose VM the plug-in enabled: their paths and contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bfinfra.backends.bitfusion import read_token, token_of
from bfinfra.kinds.linux import Answers, first_word
from bfinfra.model.errors import BfinfraError, Problem, Refusal, Rejected
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.ssh import LinuxMachine, RemotePath

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts


class ClientFiles(Part):
    """The client's files on a machine whose VM the plug-in enabled. bfinfra reads them by SSH when they are
    needed.
    """

    host: Annotated[str, Ref("linux_host")]
    """The enabled machine."""
    authority: RemotePath = "/etc/bitfusion/tls/ca.crt"
    """Path of the servers' certificate authority there."""
    servers: RemotePath = "/etc/bitfusion/servers.conf"
    """Path of the list of servers there."""
    client: RemotePath = "/root/.bitfusion/client.yaml"
    """Path of a user's access file there."""

    @property
    def paths(self) -> dict[str, str]:
        """The paths, by their names in a token."""
        return {"ca.crt": self.authority, "servers.conf": self.servers, "client.yaml": self.client}

    @property
    def commands(self) -> dict[str, Sequence[str]]:
        """The commands for `digests`."""
        return {f"given {path}": ("sha256sum", "--", path) for path in self.paths.values()}

    def digests(self, answers: Answers) -> dict[str, str]:
        """SHA-256 by the names in a token, of the files that exist."""
        found = {
            name: first_word(answers[f"given {path}"])
            for name, path in self.paths.items()
            if f"given {path}" in answers
        }
        return {name: value for name, value in found.items() if value}

    def check(self, digests: Mapping[str, str]) -> None:
        """Raises Refusal if the machine lacks one of them."""
        if absent := [path for file, path in self.paths.items() if file not in digests]:
            raise Refusal(
                f"{self.host} has no {', '.join(absent)}",
                field="client_files.host",
                why="it has no access to Bitfusion itself",
                next="enable it in the plug-in, or correct the paths",
            )


def token_files(path: str) -> dict[str, str]:
    """The files of a token, by their names. Raises BfinfraError if they can't be read."""
    try:
        return read_token(Path(path)).files
    except ValueError as error:
        raise BfinfraError(Problem("the token can't be read", path, str(error))) from None


def read_files(hosts: LinuxHosts, giver: LinuxMachine, places: Mapping[str, str]) -> dict[str, str]:
    """The files, checked, by their names in a token. Their content is hidden in logs, as a token's is. Raises
    BfinfraError.
    """
    (found,) = hosts.read({giver: {name: ("cat", "--", path) for name, path in places.items()}}).values()
    if isinstance(found, BfinfraError):
        raise found
    try:
        return token_of({name: answer.text.encode() for name, answer in found.items() if answer.ok}).files
    except ValueError as error:
        raise Rejected(
            "the client's files can't be used",
            server=giver.server,
            why=str(error),
            next="enable that machine in the plug-in, or correct the paths",
        ) from None
