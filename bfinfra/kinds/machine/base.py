"""Base of the kinds of software on Linux machines. It reads each machine with one command, finds in its
record in /var/lib/bfinfra which resource the software belongs to, and installs and removes it by an Ansible
role.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Protocol, TypeVar

from bfinfra.kinds.linux import HOST, Answers, Commands, ask, first_word, machines
from bfinfra.kinds.sent_files import digest
from bfinfra.model import compare, kind, resource
from bfinfra.model.awaited import Away, away, held
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import LinuxMachine, Play
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import Answer, LinuxHosts


FOLDER = "/var/lib/bfinfra"
"""The folder of the records on a machine."""


class Marked(Protocol):
    """Something on one machine that may have a mark."""

    @property
    def mark(self) -> Mark | None:
        """Its mark."""


class Installed(Marked, Protocol):
    """The software of one kind on one machine."""

    @property
    def there(self) -> bool:
        """True if the machine has any of it."""


On = TypeVar("On")
Found = TypeVar("Found")
M = TypeVar("M", bound=Marked)
N = TypeVar("N", bound=Installed)
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class OnHosts(resource.State, Generic[On]):
    """The parts of a resource on its machines. `on`: by machine, without machines that have nothing of it.
    `vms`: those of the machines that are virtual machines of this site.
    """

    hosts: tuple[Annotated[str, Ref(HOST)], ...]
    vms: tuple[Annotated[str, Ref("virtual_machine")], ...] = ()
    on: Mapping[str, On]
    machines: Mapping[str, LinuxMachine] = field(repr=False)


@dataclass(frozen=True)
class SoftwareFacts(Generic[Found]):
    """The other facts that a survey read. `machines`: all that answered; `found`: what each has. By resource:
    `packages`: digest of what to install, "" if it can't be read; `away`: the package that doesn't exist yet.
    """

    machines: Mapping[str, LinuxMachine]
    found: Mapping[str, Found] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    away: Mapping[str, Away] = field(default_factory=dict)

    def of(self, hosts: Iterable[str]) -> dict[str, LinuxMachine]:
        """Those of the machines that answered, by name."""
        return {host: self.machines[host] for host in hosts if host in self.machines}


@dataclass(frozen=True, kw_only=True)
class OnMachines(Step):
    """A step that runs a play on machines."""

    rights = ()  # accounts on machines are no privileges of vCenter or Kubernetes
    names: str
    machines: Mapping[str, LinuxMachine]


@dataclass(frozen=True, kw_only=True)
class Adopt(OnMachines):
    """record on {names} whose it is"""

    records: Mapping[str, Mapping[str, str]]
    """By machine: path and text of its record, as the role `record` takes them."""


@dataclass(frozen=True)
class Reading(Generic[Found]):
    """The answers of the machines. `machines`: all that answered; `found`: what each has; `answers`: their
    output.
    """

    needs: Mapping[Key, ResolvedRef]
    machines: Mapping[str, LinuxMachine]
    answers: Mapping[str, Answers]
    found: Mapping[str, Found]


class LinuxSoftware(kind.Kind[kind.S, kind.T], Generic[kind.S, kind.T, Found]):
    """A kind of software on Linux machines. `Found`: what one machine has of it."""

    name: ClassVar[str]
    """The kind's name in marks."""
    role: ClassVar[str]
    """The Ansible role that installs it; its tasks `remove` remove it."""
    undescribed = "it is on a Linux machine, and vCenter doesn't tell how to log in there by SSH"

    def __init__(self, hosts: LinuxHosts, site: Site) -> None:
        self._hosts, self._site = hosts, site.name

    @abstractmethod
    def commands(self, host: str, specs: Sequence[kind.S]) -> Commands:
        """The commands for a machine, by title. `specs`: all that the site wants."""

    @abstractmethod
    def read(self, host: str, answers: Answers) -> Found:
        """Return the parts that a machine has of it, from the machine's answers."""

    def packages(self, spec: kind.S) -> Mapping[str, LocalFile]:
        """The files to install, by the field that names each."""
        return {}

    def digest(self, spec: kind.S) -> str:
        """The digest of what to install; "" if it can't be read."""
        return "".join(digest(each.path) for each in self.packages(spec).values())

    def askable(self, spec: Any) -> tuple[str, ...]:
        """The machines that must answer for a resource to be readable."""
        return tuple(spec.hosts)

    def observe(
        self,
        wanted: Mapping[str, kind.S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Runs one command on each machine: what is recorded, installed and running there."""
        there, specs = machines(needs), {name: spec for name, spec in wanted.items() if spec is not None}
        every = tuple(specs.values())
        asked = ask(self._hosts, there.values(), lambda machine: self.commands(machine.name, every))
        found = {host: self.read(host, answers) for host, answers in asked.answers.items()}
        reading = Reading(needs, there, asked.answers, found)
        return Observation(
            self.states(wanted, reading, include_unlisted=include_unlisted),
            self.facts(specs, reading),
            asked.blind({name: self.askable(spec) for name, spec in specs.items()}),
        )

    def states(
        self, wanted: Mapping[str, kind.S | None], reading: Reading[Found], *, include_unlisted: bool
    ) -> Mapping[str, Any]:
        """The state of each resource, by name. `include_unlisted`: also of others that this site made."""
        found: Mapping[str, Any] = reading.found
        existing = existing_records(self.name, found, wanted, self._site, include_unlisted=include_unlisted)
        return {name: across(self.State, on, reading.needs) for name, on in existing.items()}

    def facts(self, specs: Mapping[str, kind.S], reading: Reading[Found]) -> SoftwareFacts[Found]:
        """Return the other facts that decisions need: machines and packages."""
        return SoftwareFacts(
            reading.machines,
            reading.found,
            {name: self.digest(spec) for name, spec in specs.items()},
            {name: gone for name, spec in specs.items() if (gone := away(spec, self.packages(spec)))},
        )

    def _play(
        self, step: OnMachines, each: Mapping[str, Mapping[str, Any]], tasks: str = "main", **how: Any
    ) -> None:
        """Runs the role on all machines of the step. `each`: by machine, its variables; `how`: see Play."""
        on = {machine: each[host] for host, machine in step.machines.items()}
        role = "record" if isinstance(step, Adopt) else self.role
        self._hosts.play(Play(role, on, tasks, **how)).check()


def across(state: Callable[..., R], on: Mapping[str, M], needs: Mapping[Key, ResolvedRef]) -> R:
    """An OnHosts: its mark, its machines, and the virtual machines that are deleted after it."""
    there = machines(needs)
    mark = next((each.mark for each in on.values() if each.mark), None)
    return state(
        mark=mark, hosts=tuple(on), vms=virtual(needs, on), on=on, machines={host: there[host] for host in on}
    )


def virtual(needs: Mapping[Key, ResolvedRef], on: Iterable[str]) -> tuple[str, ...]:
    """Those of the machines that are virtual machines of this site: what is on them is deleted first."""
    found = {
        key.name: need.state.vm for key, need in needs.items() if key.kind == HOST and need.state is not None
    }
    return tuple(vm for host in on if (vm := found.get(host)))


def existing_records(
    kind_name: str, found: Mapping[str, N], wanted: Mapping[str, Any], site: str, *, include_unlisted: bool
) -> dict[str, dict[str, N]]:
    """By resource: the machines that have something of it, by mark or because its spec names the machine.
    `include_unlisted`: also other resources of this site.
    """
    owned = [
        name
        for each in found.values()
        if include_unlisted and each.mark and (name := each.mark.name_of(site, kind_name))
    ]
    existing = {}
    for name in dict.fromkeys([*wanted, *owned]):
        spec = wanted.get(name)
        existing[name] = {
            host: each
            for host, each in found.items()
            if (spec and host in spec.hosts and each.there)
            or (each.mark and each.mark.name_of(site, kind_name) == name)
        }
    return {name: on for name, on in existing.items() if on}


def others(on: Mapping[str, Marked], mark: Mark) -> tuple[str, ...]:
    """The machines whose mark is not this resource's; none if no machine has a mark: then all of it is
    unmanaged.
    """
    if not any(each.mark for each in on.values()):
        return ()
    return tuple(host for host, each in on.items() if each.mark is None or each.mark.owner != mark.owner)


def adopted(
    spec: resource.Spec, state: OnHosts[M], context: PlanContext, at: str, notes: Mapping[str, Iterable[str]]
) -> tuple[Adopt, ...]:
    """The step of an adoption: it writes records alone. `at`: their path; `notes`: by machine, their lines
    besides the mark. Raises Refusal for a machine on which it isn't this resource's.
    """
    if theirs := others(state.on, context.mark):
        raise Refusal(
            f"what is on {', '.join(theirs)} does not belong to {context.mark.address}",
            field="hosts",
            next="remove it there, or name other machines",
        )
    mark, hosts = context.mark.committed(spec.applied()), [host for host in notes if host in state.on]
    text = {host: record_texts(mark, *notes[host])["mark_sealed"] for host in hosts}
    records = {host: {"record": at, "mark_open": text[host]} for host in hosts}
    machines, changes = {host: state.machines[host] for host in hosts}, compare.changes(spec, state.mark)
    return (Adopt(names=", ".join(hosts), machines=machines, records=records, changes=changes),)


def check_owner(on: Mapping[str, Marked], hosts: Collection[str], mark: Mark, field: str) -> None:
    """Raises Refusal for a machine of `hosts` whose software belongs to another resource. `field`: the field
    that names the machine.
    """
    for host, found in on.items():
        if host in hosts and found.mark and found.mark.owner != mark.owner:
            raise Refusal(
                f"{host} belongs to {found.mark.address} of the site {found.mark.site}",
                field=field,
                next="name another machine, or remove it from there first",
            )


def set_up_changes(
    spec: resource.Spec, state: OnHosts[Any] | None, now: Mapping[str, object], then: Mapping[str, object]
) -> tuple[Change, ...]:
    """The changes of an installation. `now`, `then`: by machine, the live and the desired fields. If no
    machine has it, the whole spec is new.
    """
    if state is None or not state.on:
        return differences(None, spec.applied())
    return compare.changes(spec, state.mark, differences({"on": now}, {"on": then}))


def while_away(
    context: PlanContext,
    installed: Iterable[str],
    decide: Callable[[PlanContext], Sequence[Step]],
    *needs: type[Step],
) -> Sequence[Step]:
    """The steps, also if the package's file doesn't exist yet: then the desired package is the one that most
    machines have.

    `installed`: the package's digest on each machine, "" for none. `decide`: returns the steps. `needs`: the
    step types that take the package; for these it raises Awaited. The facts are SoftwareFacts.
    """
    name = context.name
    if name not in context.facts.away:
        return decide(context)
    path, problem = context.facts.away[name]
    known = Counter(filter(None, installed)).most_common(1)
    if not known:
        raise held(problem, path)
    facts = replace(context.facts, packages={**context.facts.packages, name: known[0][0]})
    found = tuple(decide(replace(context, facts=facts)))
    if any(isinstance(step, needs) for step in found):
        raise held(problem, path, found)
    return found


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a kind on one machine. `noted`: its lines besides the mark; `stamp`: digest of the
    installed package; `program`: whether the program exists; `kept`: whether it is from that package.
    """

    mark: Mark | None
    noted: Mapping[str, str] = field(default_factory=dict)
    stamp: str = ""
    program: bool = False
    kept: bool = False

    @property
    def package(self) -> str:
        """The digest of the package, "" if its program is missing or another."""
        return self.stamp if self.kept else ""


def record_path(kind_name: str) -> str:
    """The path of a kind's record on a machine."""
    return f"{FOLDER}/{kind_name}"


def record_commands(kind_name: str, program: str) -> dict[str, Sequence[str]]:
    """The commands whose output `read_record` reads."""
    path = record_path(kind_name)
    return {
        "record": ("cat", path),
        "package": ("cat", f"{path}.package"),
        "program": ("sha256sum", "--", program),
    }


def read_record(answers: Answers, *names: str) -> Record:
    """The record, with its lines `NAME=…` of these names."""
    text = text_of(answers, "record") or ""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    stamped = (text_of(answers, "package") or "").split()
    program = first_word(answers["program"]) if "program" in answers else ""
    whole = len(stamped) == 2
    return Record(
        Mark.decode(text),
        {name: value for name, value in pairs if name in names},
        stamped[0] if whole else "",
        bool(program),
        whole and stamped[1] == program,
    )


def record_texts(mark: Mark, *lines: str, after: Sequence[str] = ()) -> dict[str, str]:
    """The text of the record during and after the work, as roles take it. `lines`: lines besides the mark;
    `after`: lines only for the end.
    """
    return {
        "mark_open": "\n".join((mark.pending.encode(), *lines)),
        "mark_sealed": "\n".join((mark.encode(), *lines, *after)),
    }


def text_of(answers: Answers, title: str) -> str | None:
    """The output of a command; None if it failed or was not run."""
    answer = answers.get(title)
    return answer.text if answer is not None and answer.ok else None


def whole_text(text: str | None, path: str, host: str) -> str | None:
    """The text of a file that is merged and written back. Raises Refusal if some of its bytes are no UTF-8:
    they were read as U+FFFD, and would be written back as that.
    """
    if text is not None and "\ufffd" in text:
        raise Refusal(
            f"{path} on {host} has bytes that are no UTF-8",
            field="hosts",
            why="bfinfra writes back what it doesn't change, and can't do that here",
            next=f"correct it there; grep -axv '.*' {path} shows the lines",
        )
    return text


def service(unit: str) -> tuple[str, ...]:
    """The command that prints the state of a unit, for `service_state`."""
    return ("systemctl", "show", "--property=LoadState,ActiveState", unit)


def service_state(answer: Answer) -> str:
    """The state in systemd's words; "" if there is no such unit."""
    shown = dict(line.split("=", 1) for line in answer.text.splitlines() if "=" in line)
    return shown.get("ActiveState", "") if shown.get("LoadState") == "loaded" else ""
