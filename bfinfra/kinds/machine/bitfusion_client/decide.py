"""The steps of a Bitfusion client. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bfinfra.kinds.machine.base import OnMachines, adopted, others, record_path, set_up_changes, while_away
from bfinfra.kinds.machine.bitfusion_client.spec import Spec
from bfinfra.kinds.machine.bitfusion_client.state import NAME, SHARED, BitfusionClientFacts, Installed, State
from bfinfra.kinds.sent_files import sent_name
from bfinfra.model import compare
from bfinfra.model.compare import Unknown, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.ssh import LinuxMachine
from bfinfra.model.step import Step


@dataclass(frozen=True, kw_only=True)
class SetUp(OnMachines):
    """set the Bitfusion client up on {names}"""

    install: Mapping[str, bool]
    package: str
    package_sha256: str
    token: str | Unknown
    giver: LinuxMachine | None
    """The machine that has the client's files, instead of a token."""
    given: Mapping[str, str]
    """The paths of those files on that machine, by their names in a token."""
    users: Sequence[tuple[str, str]]
    group: str
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Remove(OnMachines):
    """take the Bitfusion client off {names}"""

    noted: Mapping[str, Mapping[str, str]]


def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: install where something differs, remove where it is no longer wanted."""
    if spec is None:
        return () if state is None else (_remove(state, tuple(state.on)),)
    if state is not None and compare.adopting(state.mark):
        folders = [user.folder for user in spec.users] if spec.token or spec.client_files else []
        lines = note(str(spec.package.path), folders)
        return adopted(spec, state, context, record_path(NAME), dict.fromkeys(spec.hosts, lines))
    installed = [found.package for host, found in state.on.items() if host in spec.hosts] if state else []
    return while_away(context, installed, lambda context: tuple(_decide(name, spec, state, context)), SetUp)


def _decide(name: str, spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: BitfusionClientFacts = context.facts
    on = state.on if state else {}
    _check(name, spec, on, facts, context)
    token = facts.tokens.get(name) or (_noted_token(on.values()) if spec.token else {})
    package, mark = facts.packages[name], context.mark.committed(spec.applied())
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
        changes = set_up_changes(
            spec, state, {host: now.get(host, {}) for host in spec.hosts}, dict.fromkeys(spec.hosts, wanted)
        )
        yield SetUp(
            names=", ".join(hosts),
            machines=facts.of(hosts),
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


def note(package: str, folders: Iterable[str]) -> tuple[str, ...]:
    """The lines of a record besides the mark and the token."""
    return f"package={sent_name(package)}", f"folders={','.join(folders)}"


def _noted_token(on: Iterable[Installed]) -> dict[str, str]:
    """SHA-256 of the token's files that most machines have, while the token doesn't exist; empty if none is
    noted.
    """
    known = Counter(filter(None, (found.noted.get("token", "") for found in on))).most_common(1)
    pairs = (each.partition(":") for each in known[0][0].split(",")) if known else ()
    return {name: digest for name, _, digest in pairs}


def _shown(found: Installed, spec: Spec, files: Mapping[str, str]) -> dict[str, Any]:
    """The fields of one machine, for people."""
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
    for host in others(on, context.mark):
        raise Refusal(
            f"the client on {host} does not belong to {context.mark.address}",
            field="hosts",
            why="bfinfra did not install it for this resource",
            next="remove it there, or name another machine",
        )


def _remove(state: State, hosts: tuple[str, ...]) -> Remove:
    return Remove(
        names=", ".join(hosts),
        machines={host: state.machines[host] for host in hosts},
        noted={host: state.on[host].noted for host in hosts},
    )
