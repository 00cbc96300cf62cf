"""Reads Linux machines, each once and all in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import BfinfraError, RemoteError
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.ssh import LinuxMachine

if TYPE_CHECKING:
    from bfinfra.backends.ansible import Answer, LinuxHosts

HOST = "linux_host"
Answers = Mapping[str, "Answer"]
Commands = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Asked:
    """By machine name: its answer; `unreadable`: why a machine didn't answer."""

    answers: Mapping[str, Answers]
    unreadable: Mapping[str, str]

    def blind(self, wanted: Mapping[str, Iterable[str]]) -> dict[str, str]:
        """Resource → why it can't be read, for those (name → machines) on a machine that didn't answer."""
        found = {
            name: next((f"{host}: {self.unreadable[host]}" for host in hosts if host in self.unreadable), "")
            for name, hosts in wanted.items()
        }
        return {name: why for name, why in found.items() if why} | {
            f"(all on {host})": why for host, why in self.unreadable.items()
        }


def machines(needs: Mapping[Key, ResolvedRef]) -> dict[str, LinuxMachine]:
    """Every machine that answered, by name."""
    return {
        key.name: need.state.machine
        for key, need in needs.items()
        if key.kind == HOST and need.state is not None and not need.state.silent
    }


def ask(
    hosts: LinuxHosts,
    named: Iterable[LinuxMachine],
    commands: Callable[[LinuxMachine], Commands],
    timeout: float = 60,
) -> Asked:
    """Runs one command on each machine. Raises RemoteError if only one machine was asked and doesn't answer;
    the caller retries.
    """
    wanted = {machine: commands(machine) for machine in named}
    answers, unreadable = {}, {}
    for machine, found in hosts.read(wanted, timeout).items():
        if isinstance(found, RemoteError) and len(wanted) == 1:
            raise found
        if isinstance(found, BfinfraError):
            unreadable[machine.name] = str(found)
        else:
            answers[machine.name] = found
    return Asked(answers, unreadable)


def lines_below(folder: str, ending: str) -> Sequence[str]:
    """The command whose output `by_file` reads: every line of the files below a folder whose names end so."""
    return ("grep", "-arsZ", f"--include=*{ending}", "-e", "", "--", folder)


def by_file(text: str) -> Iterator[tuple[str, str]]:
    """Yield path and line. A file's name may have line breaks in it, but no NUL; a line has no line break."""
    while "\0" in text:
        path, _, rest = text.partition("\0")
        line, _, text = rest.partition("\n")
        yield path, line


def first_word(answer: Answer) -> str:
    """The first word of a command's output; "" if the command failed."""
    words = answer.text.split() if answer.ok else []
    return words[0] if words else ""
