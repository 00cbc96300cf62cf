"""A Bitfusion client in Linux machines: package, token, users. (Consolidated GPU cluster: enabling Bitfusion
access.)
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import SERVERS
from bfinfra.kinds.client_files import ClientFiles, Place, read_files, token_files
from bfinfra.kinds.linux import (
    Answers,
    OnHosts,
    across,
    ask,
    digest,
    first_word,
    machines,
    standing,
    while_away,
)
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.awaited import Away, away
from bfinfra.model.compare import Unknown, differences
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Refusal
from bfinfra.model.kind import Observation
from bfinfra.model.mark import Mark
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.redact import hide
from bfinfra.model.refs import Key, Ref
from bfinfra.model.resource import Part
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import Account, LinuxMachine, Play
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts

RECORD = "/var/lib/bfinfra/bitfusion_client"
SHARED = {"ca.crt": "/etc/bitfusion/tls/ca.crt", "servers.conf": "/etc/bitfusion/servers.conf"}
PATIENCE = 120  # seconds for list_gpus


class User(Part):
    """Who uses the client there."""

    name: Account
    """The user; it must be there."""
    home: Place | None = None
    """The home folder, where it isn't /root or /home/NAME."""

    @property
    def folder(self) -> str:
        """Where the client's own files are."""
        return f"{self.home or ('/root' if self.name == 'root' else f'/home/{self.name}')}/.bitfusion"


class Spec(resource.Spec):
    """What a user writes for machines that are alike."""

    awaits: ClassVar = {"package": "download the Bitfusion client's package from the vendor's site"}

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines."""
    package: LocalFile
    """The client's .deb or .rpm for their distribution."""
    token: Annotated[str, Ref("bitfusion_token")] | None = None
    """Token to put there; none where the plug-in enabled the VM and its files are there."""
    vms: tuple[Annotated[str, Ref("bitfusion_vm")], ...] = ()
    """What must be set of the machines' VMs first; they run again before anything is done in them."""
    client_files: ClientFiles | None = None
    """Instead of a token: the files of a machine that is enabled."""
    users: Annotated[tuple[User, ...], Field(min_length=1)] = (User(name="root"),)
    """Who uses it."""
    group: Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]{0,31}$|^$")] = "bitfusion"
    """Group of the package that users other than root must be in; empty = none."""
    list_gpus: bool = True
    """Ready once `bitfusion list_gpus` ends well for every user."""

    @model_validator(mode="after")
    def _one_source(self) -> Spec:
        if self.client_files and self.token:
            raise ValueError("give token or client_files")
        if self.client_files and self.client_files.host in self.hosts:
            raise ValueError(
                f"client_files.host: {self.client_files.host} is among hosts, and has the files already"
            )
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its machines: one client each."""
        yield from (
            conflict.thing(f"hosts.{index}", f"the Bitfusion client on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    @property
    def asked(self) -> tuple[str, ...]:
        """Every machine that must answer."""
        return (*self.hosts, *((self.client_files.host,) if self.client_files else ()))

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The servers, where no token says which."""
        if self.token is None:
            yield SERVERS


@dataclass(frozen=True, slots=True)
class Installed:
    """The client on one machine. `package`: SHA-256 of what was installed, "" where the program is gone or
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
        """Whether there is anything of it."""
        return bool(self.mark or self.program)


class State(OnHosts[Installed]):
    """How it stands on machines."""


@dataclass(frozen=True)
class BitfusionClientFacts:
    """`machines`: all that answered. By resource: `packages`: SHA-256 of the file, "" where it can't be read;
    `tokens`: name → SHA-256 of each of the token's files.
    """

    machines: Mapping[str, LinuxMachine]
    packages: Mapping[str, str]
    tokens: Mapping[str, Mapping[str, str]]
    away: Mapping[str, Away] = field(default_factory=dict)
    """By resource: the package that isn't there yet."""


@dataclass(frozen=True, kw_only=True)
class SetUp(Step):
    """set the Bitfusion client up on {names}"""

    rights = ()  # accounts of machines are no rights of vCenter or Kubernetes
    names: str
    machines: Mapping[str, LinuxMachine]
    install: Mapping[str, bool]
    package: str
    package_sha256: str
    token: str | Unknown
    giver: LinuxMachine | None
    """Who has the client's files, instead of a token."""
    given: Mapping[str, str]
    """Where it has them, by their names in a token."""
    users: Sequence[tuple[str, str]]
    group: str
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Remove(Step):
    """take the Bitfusion client off {names}"""

    rights = ()
    names: str
    machines: Mapping[str, LinuxMachine]
    noted: Mapping[str, Mapping[str, str]]


class BitfusionClient(kind.Kind[Spec, State]):
    """A Bitfusion client in Linux machines."""

    document = Document.CONSOLIDATED
    step_types = (SetUp, Remove)

    def __init__(self, hosts: LinuxHosts, site: Site) -> None:
        self._hosts, self._site = hosts, site.name

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """One command a machine."""
        there, specs = machines(needs), {name: spec for name, spec in wanted.items() if spec is not None}
        asked = ask(self._hosts, there.values(), lambda machine: _look(machine.name, specs.values()))
        found = {host: _read(answers) for host, answers in asked.answers.items()}
        states = {
            name: across(State, on, needs)
            for name, on in standing(
                "bitfusion_client", found, wanted, self._site, include_unlisted=include_unlisted
            ).items()
        }
        facts = BitfusionClientFacts(
            there,
            {name: digest(spec.package.path) for name, spec in specs.items()},
            {name: _digests(spec, asked.answers, needs) for name, spec in specs.items()},
            {name: gone for name, spec in specs.items() if (gone := away(spec, {"package": spec.package}))},
        )
        return Observation(states, facts, asked.blind({name: spec.asked for name, spec in specs.items()}))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Set up where something differs, on all such machines side by side; take off where it shall
        not be.
        """
        if spec is None:
            return () if state is None else (_remove(state, tuple(state.on)),)
        stood = [found.package for host, found in state.on.items() if host in spec.hosts] if state else []
        return while_away(context, stood, lambda context: tuple(_decide(name, spec, state, context)), SetUp)

    def ready(self, spec: Spec, state: State) -> Readiness:
        """`bitfusion list_gpus` ends well for every user."""
        if not spec.list_gpus:
            return Readiness(Ready.READY)
        commands = {
            user.name: ("sudo", "-n", "-H", "-u", user.name, "bitfusion", "list_gpus")
            if user.name != "root"
            else ("bitfusion", "list_gpus")
            for user in spec.users
        }
        for machine, found in self._hosts.read(
            {machine: commands for host, machine in state.machines.items() if host in spec.hosts}, PATIENCE
        ).items():
            if isinstance(found, BfinfraError):
                return waiting(f"{machine.name} does not answer: {found}")
            for user, answer in found.items():
                if not answer.ok:
                    said = " ".join(answer.text.split())[-300:]
                    return (waiting if "responded correctly" in said or "timeout" in said else failed)(
                        f"bitfusion list_gpus of {user} on {machine.name}: {said or answer.code}"
                    )
        return Readiness(
            Ready.READY,
            note=(
                f"list_gpus ends well for {', '.join(user.name for user in spec.users)} on "
                f"{', '.join(spec.hosts)}"
            ),
        )

    def run(self, step: Step, report: kind.Report) -> None:
        """One play on all machines of the step."""
        match step:
            case SetUp():
                self._set_up(step)
            case Remove(machines=there, noted=noted):
                each = {
                    machine: {
                        "package_name": noted[host].get("package", "none.none"),
                        "files": _files_of(noted[host]),
                        "folders": [folder for folder in noted[host].get("folders", "").split(",") if folder],
                    }
                    for host, machine in there.items()
                }
                self._hosts.play(Play("bitfusion_client", each, tasks="remove")).check()
            case _:
                raise AssertionError(step)

    def _set_up(self, step: SetUp) -> None:
        texts = self._texts(step)
        package, folders = (
            step.package.rpartition("/")[2],
            [folder for _, folder in step.users] if texts else [],
        )
        digests = ",".join(
            f"{name}:{hashlib.sha256(text.encode()).hexdigest()}" for name, text in sorted(texts.items())
        )
        note = f"\npackage={package}\nfolders={','.join(folders)}" + (
            f"\ntoken={digests}" if step.token else ""
        )
        common: dict[str, Any] = {
            "package": step.package,
            "package_sha256": step.package_sha256,
            "unfinished": True,
            "token": bool(texts),
            "group": step.group,
            "users": [
                {"name": name, "home": folder.removesuffix("/.bitfusion")} for name, folder in step.users
            ],
            "mark_open": step.mark.open.encode() + note,
            "mark_sealed": step.mark.encode() + note,
        }
        each = {machine: {**common, "install": step.install[host]} for host, machine in step.machines.items()}
        self._hosts.play(Play("bitfusion_client", each, texts=texts)).check()

    def _texts(self, step: SetUp) -> dict[str, str]:
        """The token's files, or those of the machine that gives them."""
        if step.giver is None:
            return (
                {
                    name: hide(text) if name == "client.yaml" else text
                    for name, text in token_files(str(step.token)).items()
                }
                if step.token
                else {}
            )
        return read_files(self._hosts, step.giver, step.given)


def _look(host: str, specs: Any) -> dict[str, Sequence[str]]:
    """What is asked of a machine: what any resource that names it wants there."""
    users = [user for spec in specs if host in spec.hosts for user in spec.users]
    look: dict[str, Sequence[str]] = {
        "record": ("cat", RECORD),
        "package": ("cat", f"{RECORD}.package"),
        "program": ("sha256sum", "/usr/bin/bitfusion"),
        "files": ("sha256sum", *SHARED.values(), *(f"{user.folder}/client.yaml" for user in users)),
    }
    given = {
        title: command
        for spec in specs
        if spec.client_files and host == spec.client_files.host
        for title, command in spec.client_files.commands.items()
    }
    return (
        look
        | {f"member {user.name}": ("id", "-Gn", user.name) for user in users if user.name != "root"}
        | given
    )


def _read(answers: Answers) -> Installed:
    record = answers["record"].text if answers["record"].ok else ""
    stamped = answers["package"].text.split() if answers["package"].ok else []
    program = first_word(answers["program"])
    lines = (line.split(None, 1) for line in answers["files"].text.splitlines())
    files = {words[1].strip(): words[0] for words in lines if len(words) == 2 and len(words[0]) == 64}
    members = frozenset(
        f"{name.removeprefix('member ')} {group}"
        for name, answer in answers.items()
        if name.startswith("member ") and answer.ok
        for group in answer.text.split()
    )
    return Installed(
        mark=Mark.decode(record),
        package=stamped[0] if len(stamped) == 2 and stamped[1] == program else "",
        program=bool(program),
        files=files,
        members=members,
        noted=dict(
            line.split("=", 1)
            for line in record.splitlines()
            if line.startswith(("package=", "folders=", "token="))
        ),
    )


def _digests(spec: Spec, answers: Mapping[str, Answers], needs: Mapping[Key, ResolvedRef]) -> dict[str, str]:
    """SHA-256 of the token's files, or of those that another machine gives."""
    if spec.client_files:
        return spec.client_files.digests(answers.get(spec.client_files.host, {}))
    return _token(spec, needs)


def _token(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> dict[str, str]:
    """SHA-256 of the token's files, where it can be read: what is wrong with it, the token itself says."""
    need = needs.get(Key("bitfusion_token", spec.token or ""))
    if need is None or need.state is None:
        return {}
    return {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in token_files(need.state.path).items()
    }


def _decide(name: str, spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: BitfusionClientFacts = context.facts
    on = state.on if state else {}
    _check(name, spec, on, facts, context)
    token = facts.tokens.get(name) or (_noted_token(on.values()) if spec.token else {})
    package, mark = facts.packages[name], context.mark.seal(spec.applied())
    files = {path: token[file] for file, path in SHARED.items() if file in token} | {
        f"{user.folder}/client.yaml": token["client.yaml"] for user in spec.users if token
    }
    wanted = {
        "package": package[:12],
        "files": {path: value[:12] for path, value in files.items()},
        "users": {user.name: "a member" for user in spec.users if spec.group and user.name != "root"},
    }
    now = {host: _shown(on[host], spec, files) for host in spec.hosts if host in on}
    hosts = [
        host
        for host in spec.hosts
        if host not in on or on[host].mark != mark or differences(now[host], wanted)
    ]
    if hosts:
        world = (
            differences(
                {"on": {host: now.get(host, {}) for host in spec.hosts}},
                {"on": dict.fromkeys(spec.hosts, wanted)},
            )
            if on
            else ()
        )
        changes = (
            compare.changes(spec, state.mark if state else None, world)
            if on
            else differences(None, spec.applied())
        )
        yield SetUp(
            names=", ".join(hosts),
            machines={host: facts.machines[host] for host in hosts if host in facts.machines},
            package=str(spec.package.path),
            package_sha256=package,
            install={host: host not in on or on[host].package != package for host in hosts},
            users=[(user.name, user.folder) for user in spec.users],
            group=spec.group,
            mark=mark,
            token=context.needs["token"].get("path") if spec.token else "",
            changes=changes,
            giver=facts.machines.get(spec.client_files.host) if spec.client_files else None,
            given=spec.client_files.paths if spec.client_files else {},
        )
    leaving = tuple(host for host in on if host not in spec.hosts)
    if leaving and state:
        yield _remove(state, leaving)


def _noted_token(on: Iterable[Installed]) -> dict[str, str]:
    """SHA-256 of the files of the token that most machines were given, while it is away; nothing where nobody
    noted it.
    """
    known = Counter(filter(None, (found.noted.get("token", "") for found in on))).most_common(1)
    pairs = (each.partition(":") for each in known[0][0].split(",")) if known else ()
    return {name: digest for name, _, digest in pairs}


def _shown(found: Installed, spec: Spec, files: Mapping[str, str]) -> dict[str, Any]:
    """One machine as it is, for people."""
    members = {user.name: "a member" for user in spec.users if f"{user.name} {spec.group}" in found.members}
    return {
        "package": found.package[:12] or None,
        "files": {path: found.files[path][:12] for path in files if path in found.files},
        "users": members if spec.group else {},
    }


def _check(
    name: str, spec: Spec, on: Mapping[str, Installed], facts: BitfusionClientFacts, context: PlanContext
) -> None:
    if not facts.packages.get(name):
        raise Refusal(
            f"the package {spec.package.text} can't be read",
            field="package",
            next="download it, or correct the path",
        )
    if spec.client_files:
        spec.client_files.check(facts.tokens.get(name, {}))
    if any(each.mark for each in on.values()):
        for host, each in on.items():
            if each.mark is None or each.mark.owner != context.mark.owner:
                raise Refusal(
                    f"the client on {host} is not of {context.mark.address}",
                    field="hosts",
                    why="bfinfra did not put it there for this site",
                    next="remove it there, or name another machine",
                )


def _remove(state: State, hosts: tuple[str, ...]) -> Remove:
    return Remove(
        names=", ".join(hosts),
        machines={host: state.machines[host] for host in hosts},
        noted={host: state.on[host].noted for host in hosts},
    )


def _files_of(noted: Mapping[str, str]) -> list[str]:
    """What of a token was put on a machine."""
    folders = [folder for folder in noted.get("folders", "").split(",") if folder]
    return [*SHARED.values(), *(f"{folder}/client.yaml" for folder in folders)] if folders else []
