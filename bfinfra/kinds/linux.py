"""What kinds on Linux machines share: the machines among the needs, asked once each and side by side; how
what is on them stands; digests of files here.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

from bfinfra.model import resource
from bfinfra.model.awaited import held
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import BfinfraError, RemoteError
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.ssh import LinuxMachine
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import Answer, LinuxHosts

HOST = "linux_host"
Answers = Mapping[str, "Answer"]
Commands = Mapping[str, Sequence[str]]
T = TypeVar("T", bound="Installed")
On = TypeVar("On")
S = TypeVar("S")


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


def virtual(needs: Mapping[Key, ResolvedRef], on: Iterable[str]) -> tuple[str, ...]:
    """The virtual machines of this site among these machines: what is on them goes first."""
    found = {
        key.name: need.state.vm for key, need in needs.items() if key.kind == HOST and need.state is not None
    }
    return tuple(vm for host in on if (vm := found.get(host)))


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


@dataclass(frozen=True, kw_only=True)
class OnHosts(resource.State, Generic[On]):
    """How something stands on machines. `on`: by machine; only where there is something of it. `vms`: the
    virtual machines of this site among them.
    """

    hosts: tuple[Annotated[str, Ref(HOST)], ...]
    vms: tuple[Annotated[str, Ref("virtual_machine")], ...] = ()
    on: Mapping[str, On]
    machines: Mapping[str, LinuxMachine] = field(repr=False)


def across(state: Callable[..., S], on: Mapping[str, T], needs: Mapping[Key, ResolvedRef]) -> S:
    """An OnHosts: whose it is, where, and what goes only after it."""
    there = machines(needs)
    mark = next((each.mark for each in on.values() if each.mark), None)
    return state(
        mark=mark, hosts=tuple(on), vms=virtual(needs, on), on=on, machines={host: there[host] for host in on}
    )


class Installed(Protocol):
    """What stands on one machine."""

    @property
    def mark(self) -> Mark | None:
        """Whose it is."""

    @property
    def there(self) -> bool:
        """Whether there is anything of it."""


def standing(
    kind: str, found: Mapping[str, T], wanted: Mapping[str, Any], site: str, *, include_unlisted: bool
) -> dict[str, dict[str, T]]:
    """By resource: on which machines something of it stands, by its mark or because its spec names the
    machine. `include_unlisted`: also what else this site made.
    """
    owned = [
        name
        for each in found.values()
        if include_unlisted and each.mark and (name := each.mark.name_of(site, kind))
    ]
    stands = {}
    for name in dict.fromkeys([*wanted, *owned]):
        spec = wanted.get(name)
        stands[name] = {
            host: each
            for host, each in found.items()
            if (spec and host in spec.hosts and each.there)
            or (each.mark and each.mark.name_of(site, kind) == name)
        }
    return {name: on for name, on in stands.items() if on}


def while_away(
    context: PlanContext,
    stood: Iterable[str],
    decide: Callable[[PlanContext], Sequence[Step]],
    *needs: type[Step],
) -> Sequence[Step]:
    """The steps, also while the package is away: then machines are held against what most of them have.

    `stood`: the package's digest on each machine, "" where none is; `decide`: the steps; `needs`: the steps
    that take the package, and are awaited with it. The facts have `packages` and `away`, by resource.
    """
    name = context.name
    if name not in context.facts.away:
        return decide(context)
    field, problem = context.facts.away[name]
    known = Counter(filter(None, stood)).most_common(1)
    if not known:
        raise held(problem, field)
    facts = replace(context.facts, packages={**context.facts.packages, name: known[0][0]})
    found = tuple(decide(replace(context, facts=facts)))
    if any(isinstance(step, needs) for step in found):
        raise held(problem, field, found)
    return found


def digest(path: Path) -> str:
    """SHA-256 of a file here; "" where it can't be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def service(unit: str) -> tuple[str, ...]:
    """The command that tells how a unit stands; `service_state` reads what it says."""
    return ("systemctl", "show", "--property=LoadState,ActiveState", unit)


def service_state(answer: Answer) -> str:
    """As systemd calls it; "" where there is no such unit."""
    shown = dict(line.split("=", 1) for line in answer.text.splitlines() if "=" in line)
    return shown.get("ActiveState", "") if shown.get("LoadState") == "loaded" else ""


def first_word(answer: Answer) -> str:
    """Of a command that went well, else ""."""
    words = answer.text.split() if answer.ok else []
    return words[0] if words else ""
