"""Linux machines among the needs, asked once each and side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """By the machines' names: what each said; `unreadable`: why a machine said nothing."""

    answers: Mapping[str, Answers]
    unreadable: Mapping[str, str]

    def blind(self, wanted: Mapping[str, Iterable[str]]) -> dict[str, str]:
        """Resource → why it can't be read, for those (name → machines) that are on a machine which said
        nothing.
        """
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
    patience: float = 60,
) -> Asked:
    """One command a machine. RemoteError where a single machine was asked for and doesn't answer: the caller
    tries again.
    """
    wanted = {machine: commands(machine) for machine in named}
    answers, unreadable = {}, {}
    for machine, found in hosts.read(wanted, patience).items():
        if isinstance(found, RemoteError) and len(wanted) == 1:
            raise found
        if isinstance(found, BfinfraError):
            unreadable[machine.name] = str(found)
        else:
            answers[machine.name] = found
    return Asked(answers, unreadable)


def first_word(answer: Answer) -> str:
    """Of a command that went well, else ""."""
    words = answer.text.split() if answer.ok else []
    return words[0] if words else ""
