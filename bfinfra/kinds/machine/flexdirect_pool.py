"""The list of the GPU servers of one type, for the CPU hosts that use them: servers.conf. (Guide, step 5.)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from pydantic import Field

from bfinfra.backends.flexdirect import servers as lists
from bfinfra.kinds.capabilities import FLEXDIRECT, LISTS, on_machines
from bfinfra.kinds.linux import HOST, Answers, Commands, by_file, lines_below
from bfinfra.kinds.machine.base import (
    LinuxSoftware,
    OnHosts,
    OnMachines,
    Reading,
    SoftwareFacts,
    others,
    set_up_changes,
    virtual,
    whole_text,
)
from bfinfra.kinds.machine.flexdirect_host.spec import PORT
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.step import Step

FOLDER = "/etc/bitfusionio"
LOOK: Commands = {"lists": lines_below(FOLDER, lists.FILE)}


class Spec(resource.Spec):
    """The desired state of one type of GPU."""

    name_pattern = r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}"
    name_rule = "letters, digits, dots, dashes and underscores, at most 61: it names a file"

    servers: Annotated[tuple[Annotated[str, Ref("flexdirect_host")], ...], Field(min_length=1)]
    """The flexdirect_hosts whose machines are the servers, in this order; each needs a scheduler."""
    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The CPU hosts that get the list."""
    default: bool = False
    """Write it as servers.conf, too: the list for containers that name no other."""

    def takes(self, name: str) -> Iterator[Taken]:
        """The default list of its hosts, if it is the default."""
        for index, host in enumerate(self.hosts if self.default else ()):
            yield conflict.thing(f"hosts.{index}", f"the default pool of {host}", "machine")

    def files(self, name: str) -> tuple[str, ...]:
        """The files' names."""
        return (f"{name}_{lists.FILE}", *((lists.FILE,) if self.default else ()))

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its list on the CPU hosts."""
        return on_machines(LISTS, self.hosts)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The FlexDirect program on those hosts, in whose folder the list is."""
        return (Capability(FLEXDIRECT, f"{HOST}/{each}") for each in self.hosts)


@dataclass(frozen=True, slots=True)
class Listed:
    """A list on a host: its mark, its servers (None if it can't be parsed), its text."""

    mark: Mark | None
    servers: tuple[str, ...] | None
    text: str = ""


Files = Mapping[str, Listed]
"""By file name."""


@dataclass(frozen=True, kw_only=True)
class State(OnHosts[Files]):
    """The file of each of its machines. `servers`: the listed ones, which are deleted after it."""

    servers: tuple[Annotated[str, Ref("flexdirect_host")], ...]


@dataclass(frozen=True)
class FlexDirectPoolFacts(SoftwareFacts[Files]):
    """In addition, by resource: `servers`: `address:port` of each, or why one has none."""

    servers: Mapping[str, tuple[str, ...] | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Write(OnMachines):
    """write the list of servers on {names}"""

    files: Mapping[str, str]
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Remove(Write):
    """take the list of servers off {names}"""


class FlexdirectPool(LinuxSoftware[Spec, State, Files]):
    """A list of GPU servers of one type, on the CPU hosts that use them."""

    document = Document.FLEXDIRECT
    step_types = (Write, Remove)
    name = role = "flexdirect_pool"

    def commands(self, host: str, specs: Sequence[Spec]) -> Commands:
        """Reads every list there."""
        return LOOK

    def read(self, host: str, answers: Answers) -> Files:
        """The lists, parsed."""
        return _read(answers["lists"].text)

    def states(
        self, wanted: Mapping[str, Spec | None], reading: Reading[Files], *, include_unlisted: bool
    ) -> Mapping[str, State]:
        """By file, as a machine has several lists."""
        states = {}
        for name in dict.fromkeys([*wanted, *(self._owned(reading.found) if include_unlisted else ())]):
            on = {
                host: mine
                for host, files in reading.found.items()
                if (mine := self._mine(name, wanted.get(name), host, files))
            }
            if on:
                states[name] = _state(on, reading)
        return states

    def facts(self, specs: Mapping[str, Spec], reading: Reading[Files]) -> FlexDirectPoolFacts:
        """Adds the addresses of the servers."""
        return FlexDirectPoolFacts(
            reading.machines,
            reading.found,
            servers={name: _addresses(spec, reading.needs) for name, spec in specs.items()},
        )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Writes a list that differs, removes one that is no longer wanted."""
        if spec is None:
            return (
                ()
                if state is None
                else (
                    Remove(
                        names=", ".join(state.on),
                        machines=state.machines,
                        files={},
                        gone={host: tuple(files) for host, files in state.on.items()},
                    ),
                )
            )
        return tuple(_decide(name, spec, state, context))

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Always ready, as the list was read back."""
        servers = next(
            (each.servers for files in state.on.values() for each in files.values() if each.servers), ()
        )
        return Readiness(Ready.READY, note=f"{len(servers)} servers on {len(state.on)} hosts")

    def run(self, step: Step, report: kind.Report) -> None:
        """Runs one step, as one play on all its hosts."""
        assert isinstance(step, Write)
        lists = [{"path": f"{FOLDER}/{name}", "text": text} for name, text in step.files.items()]
        each = {
            host: {"lists": lists, "gone": [f"{FOLDER}/{name}" for name in step.gone.get(host, ())]}
            for host in step.machines
        }
        self._play(step, each)

    def _mine(
        self, name: str, spec: Spec | None, host: str, files: Mapping[str, Listed]
    ) -> dict[str, Listed]:
        wanted = spec.files(name) if spec and host in spec.hosts else ()
        return {
            file: each
            for file, each in files.items()
            if file in wanted or (each.mark and each.mark.name_of(self._site, self.name) == name)
        }

    def _owned(self, found: Mapping[str, Mapping[str, Listed]]) -> Iterator[str]:
        for files in found.values():
            for each in files.values():
                if each.mark and (name := each.mark.name_of(self._site, self.name)):
                    yield name


def _state(on: Mapping[str, Files], reading: Reading[Files]) -> State:
    mark = next((each.mark for files in on.values() for each in files.values() if each.mark), None)
    listed = (mark.applied or {}).get("servers", ()) if mark else ()
    return State(
        mark=mark,
        hosts=tuple(on),
        vms=virtual(reading.needs, on),
        servers=tuple(
            key.name for key in reading.needs if key.kind == "flexdirect_host" and key.name in listed
        ),
        on=on,
        machines={host: reading.machines[host] for host in on},
    )


def _read(text: str) -> dict[str, Listed]:
    """From the output of grep: lines, each after its file's path."""
    files: dict[str, list[str]] = {}
    for path, line in by_file(text):
        if path.startswith(f"{FOLDER}/"):
            files.setdefault(path.removeprefix(f"{FOLDER}/"), []).append(line)
    return {
        name: Listed(Mark.decode(text), _parsed(text), text)
        for name, lines in files.items()
        for text in ["\n".join(lines)]
    }


def _parsed(text: str) -> tuple[str, ...] | None:
    try:
        return lists.parse(text)
    except ValueError:
        return None


def _addresses(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> tuple[str, ...] | str:
    """The addresses where the servers listen, by the site; or why one has none."""
    found: list[str] = []
    for name in spec.servers:
        need = needs.get(Key("flexdirect_host", name))
        group = need.spec if need else None
        if group is None or group.scheduler is None:
            return f"flexdirect_host/{name} has no scheduler"
        named = (needs.get(Key(HOST, host)) for host in group.hosts)
        found += [
            f"{each.spec.address}:{group.scheduler.port or PORT}"
            for each in named
            if each is not None and each.spec is not None
        ]
    return tuple(found)


def _decide(name: str, spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: FlexDirectPoolFacts = context.facts
    servers = facts.servers[name]
    if isinstance(servers, str):
        raise Refusal(servers, field="servers", next="give it one, or name others")
    _check(state, context)
    mark = context.mark.committed(spec.applied())
    if state and compare.adopting(state.mark):
        yield from _adopted(spec, state, mark)
        return
    on = state.on if state else {}
    then: dict[str, Any] = {host: {file: list(servers) for file in spec.files(name)} for host in spec.hosts}
    now = {
        host: {
            file: list(each.servers) if each.servers is not None else "no list of servers"
            for file, each in on.get(host, {}).items()
        }
        for host in spec.hosts
    }
    stale = {
        host: tuple(file for file in files if host not in spec.hosts or file not in spec.files(name))
        for host, files in on.items()
    }
    committed = all(
        on.get(host, {}).get(file) is not None and on[host][file].mark == mark
        for host in spec.hosts
        for file in spec.files(name)
    )
    hosts = [
        host
        for host in spec.hosts
        if now[host] != then[host] or any(each.mark != mark for each in on.get(host, {}).values())
    ]
    if hosts:
        changes = set_up_changes(spec, state, now, then)
        yield Write(
            names=", ".join(hosts),
            machines=facts.of(hosts),
            gone={host: stale.get(host, ()) for host in hosts},
            files={file: lists.render(servers, mark.encode()) for file in spec.files(name)},
            changes=changes or (() if committed else compare.changes(spec, None)),
        )
    leaving = {host: files for host, files in stale.items() if files and host not in spec.hosts}
    if leaving and state:
        yield Remove(
            names=", ".join(leaving),
            machines={host: state.machines[host] for host in leaving},
            files={},
            gone=leaving,
        )


def _adopted(spec: Spec, state: State, mark: Mark) -> Iterator[Write]:
    """The steps that put the mark above each list, and change no list."""
    for host, files in state.on.items():
        bare = {
            file: f"{lists.render((), mark.encode())}{whole_text(each.text, f'{FOLDER}/{file}', host)}\n"
            for file, each in files.items()
            if each.mark is None
        }
        if bare:
            machines = {host: state.machines[host]}
            yield Write(names=host, machines=machines, files=bare, changes=compare.changes(spec, state.mark))


def _check(state: State | None, context: PlanContext) -> None:
    found = {
        f"{FOLDER}/{file} on {host}": each
        for host, files in (state.on if state else {}).items()
        for file, each in files.items()
    }
    for where in others(found, context.mark):
        raise Refusal(
            f"{where} does not belong to {context.mark.address}",
            field="hosts",
            next="move that file away, or name another host",
        )
