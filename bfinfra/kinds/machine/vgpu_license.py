"""vGPU client licensing in Linux machines: gridd.conf, and the service that reads it. (RDG for PVRDMA:
licensed NVIDIA GRID, license server on port 7070.)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from bfinfra.kinds.capabilities import LICENSE, on_machines
from bfinfra.kinds.linux import Answers, OnHosts, across, ask, machines, service, service_state, standing
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.compare import differences
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Refusal
from bfinfra.model.kind import Observation
from bfinfra.model.mark import Mark
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import Readiness, Ready, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.site import Site
from bfinfra.model.ssh import HostAddress, LinuxMachine, Play
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts

RECORD, CONF, SERVICE = "/var/lib/bfinfra/vgpu_license", "/etc/nvidia/gridd.conf", "nvidia-gridd.service"
LOOK = {"record": ("cat", RECORD), "conf": ("cat", CONF), "service": service(SERVICE)}
Port = Annotated[int, Field(ge=1, le=65535)]
Values = Mapping[str, str | None]
"""Key of gridd.conf → its value; None where it doesn't stand there."""


class Spec(resource.Spec):
    """What a user writes for machines that are alike."""

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines; NVIDIA's guest driver is there, and with it nvidia-gridd."""
    server: HostAddress
    """License server."""
    port: Port = 7070
    """Its port."""
    backup: HostAddress | None = None
    """Second license server."""
    backup_port: Port = 7070
    """Its port."""
    feature_type: Literal["0", "1", "2", "4"] = "4"
    """What is licensed: 0 nothing, 1 vGPU (by its type), 2 RTX Virtual Workstation, 4 Virtual Compute
    Server.
    """
    licensed: bool = True
    """Ready once `nvidia-smi -q` says on each machine that it has its license."""

    @model_validator(mode="after")
    def _each_once(self) -> Spec:
        if len(set(self.hosts)) != len(self.hosts):
            raise ValueError("a machine stands there twice")
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """Its machines: one license each."""
        yield from (
            conflict.thing(f"hosts.{index}", f"the vGPU license on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    def values(self) -> dict[str, str]:
        """As gridd.conf has them."""
        found = {"ServerAddress": self.server, "ServerPort": str(self.port), "FeatureType": self.feature_type}
        return found | (
            {"BackupServerAddress": self.backup, "BackupServerPort": str(self.backup_port)}
            if self.backup
            else {}
        )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Licensed vGPUs: programs compute on them."""
        return on_machines(LICENSE, self.hosts)


@dataclass(frozen=True, slots=True)
class Installed:
    """One machine. `text`: of gridd.conf, None where there is none; `before`: what our keys had before us;
    `made`: there was no such file; `service`: as systemd calls its state.
    """

    mark: Mark | None
    text: str | None = None
    before: Values = field(default_factory=dict)
    made: bool = False
    service: str = ""

    @property
    def there(self) -> bool:
        """Whether a license server is named there."""
        return bool(self.mark or read(self.text).get("ServerAddress"))


class State(OnHosts[Installed]):
    """How it stands on machines."""


@dataclass(frozen=True)
class VgpuLicenseFacts:
    """All machines that answered, and how each stands."""

    machines: Mapping[str, LinuxMachine]
    found: Mapping[str, Installed]


@dataclass(frozen=True, kw_only=True)
class SetUp(Step):
    """name the license server on {names}"""

    rights = ()  # accounts of machines are no rights of vCenter or Kubernetes
    names: str
    machines: Mapping[str, LinuxMachine]
    texts: Mapping[str, str]
    notes: Mapping[str, str]
    """By machine: what its record says besides the mark."""
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Remove(Step):
    """give gridd.conf on {names} back"""

    rights = ()
    names: str
    machines: Mapping[str, LinuxMachine]
    texts: Mapping[str, str]
    """By machine; "" = there was none."""


class VgpuLicense(kind.Kind[Spec, State]):
    """Linux machines take their vGPU license from a license server."""

    document = Document.PVRDMA
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
        there = machines(needs)
        asked = ask(self._hosts, there.values(), lambda _: LOOK)
        found = {host: _read(answers) for host, answers in asked.answers.items()}
        states = {
            name: across(State, on, needs)
            for name, on in standing(
                "vgpu_license", found, wanted, self._site, include_unlisted=include_unlisted
            ).items()
        }
        return Observation(
            states,
            VgpuLicenseFacts(there, found),
            asked.blind({name: spec.hosts for name, spec in wanted.items() if spec is not None}),
        )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Write where something differs; give back where it shall not be."""
        if spec is None:
            return () if state is None else (_remove(state, tuple(state.on)),)
        return tuple(_decide(spec, state, context))

    def ready(self, spec: Spec, state: State) -> Readiness:
        """`nvidia-smi -q` says Licensed on each machine."""
        if not spec.licensed or spec.feature_type == "0":
            return Readiness(Ready.READY)
        there = {
            machine: {"smi": ("nvidia-smi", "-q")}
            for host, machine in state.machines.items()
            if host in spec.hosts
        }
        for machine, found in self._hosts.read(there).items():
            if isinstance(found, BfinfraError):
                return waiting(f"{machine.name} does not answer: {found}")
            said = license_status(found["smi"].text)
            if not said.startswith("Licensed"):
                return waiting(
                    f"{machine.name} has no license: "
                    f"{said or ' '.join(found['smi'].text.split())[-200:] or 'nvidia-smi says nothing of it'}"
                )
        return Readiness(Ready.READY, note=f"licensed: {', '.join(spec.hosts)}")

    def run(self, step: Step, report: kind.Report) -> None:
        """One play on all machines of the step."""
        match step:
            case SetUp():
                each: dict[LinuxMachine, dict[str, Any]] = {
                    machine: {
                        "text": step.texts[host],
                        "mark_open": f"{step.mark.open.encode()}\n{step.notes[host]}",
                        "mark_sealed": f"{step.mark.encode()}\n{step.notes[host]}",
                    }
                    for host, machine in step.machines.items()
                }
                self._hosts.play(Play("vgpu_license", each)).check()
            case Remove():
                self._hosts.play(
                    Play(
                        "vgpu_license",
                        {machine: {"text": step.texts[host]} for host, machine in step.machines.items()},
                        tasks="remove",
                    )
                ).check()
            case _:
                raise AssertionError(step)


def read(text: str | None) -> dict[str, str]:
    """Keys and values of gridd.conf, without its comments."""
    pairs = (
        line.partition("=")
        for line in (text or "").splitlines()
        if "=" in line and not line.lstrip().startswith("#")
    )
    return {key.strip(): value.strip() for key, _, value in pairs}


def merged(text: str | None, values: Values) -> str:
    """Gridd.conf with these values: each in its line, where it has one; comments and all other lines as they
    are.
    """
    lines, left = [], dict(values)
    for line in (text or "").splitlines():
        key = line.partition("=")[0].strip()
        if line.lstrip().startswith("#") or "=" not in line or key not in values:
            lines.append(line)
        elif (value := left.pop(key, None)) is not None:
            lines.append(f"{key}={value}")
    lines += [f"{key}={value}" for key, value in left.items() if value is not None]
    return "".join(f"{line}\n" for line in lines)


def license_status(text: str) -> str:
    """What `nvidia-smi -q` says of the license; the worst of several GPUs, "" where it says nothing."""
    found = [
        value.strip()
        for name, _, value in (line.partition(":") for line in text.splitlines())
        if name.strip() == "License Status"
    ]
    return next((each for each in found if not each.startswith("Licensed")), found[0] if found else "")


def _read(answers: Answers) -> Installed:
    record = answers["record"].text if answers["record"].ok else ""
    noted = next(
        (line.removeprefix("before=") for line in record.splitlines() if line.startswith("before=")), ""
    )
    try:
        before = json.loads(base64.b64decode(noted, validate=True)) if noted else {}
    except ValueError:
        before = {}
    return Installed(
        Mark.decode(record),
        answers["conf"].text if answers["conf"].ok else None,
        before,
        "made=yes" in record.splitlines(),
        service_state(answers["service"]),
    )


def _decide(spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: VgpuLicenseFacts = context.facts
    on = state.on if state else {}
    _check(spec, on, facts, context)
    wanted, mark = spec.values(), context.mark.seal(spec.applied())
    now, texts, notes = {}, {}, {}
    for host in spec.hosts:
        found = facts.found.get(host, Installed(None))
        standing_there = read(found.text)
        values: Values = {
            **{key: value for key, value in found.before.items() if key not in wanted},
            **wanted,
        }
        now[host] = {
            "values": {key: standing_there.get(key) for key in values},
            "service": "running" if found.service == "active" else found.service,
        }
        then = {"values": values, "service": "running"}
        if found.mark != mark or differences(now[host], then):
            texts[host] = found.text or "" if now[host]["values"] == values else merged(found.text, values)
            before = {
                **{key: standing_there.get(key) for key in wanted},
                **(found.before if found.mark else {}),
            }
            notes[host] = _note(before, made=found.made if found.mark else found.text is None)
    if texts:
        world = (
            differences(
                {"on": {host: now[host] for host in spec.hosts}},
                {"on": {host: {"values": wanted, "service": "running"} for host in spec.hosts}},
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
            names=", ".join(texts),
            machines={host: facts.machines[host] for host in texts if host in facts.machines},
            texts=texts,
            notes=notes,
            mark=mark,
            changes=changes,
        )
    leaving = tuple(host for host in on if host not in spec.hosts)
    if leaving and state:
        yield _remove(state, leaving)


def _check(spec: Spec, on: Mapping[str, Installed], facts: VgpuLicenseFacts, context: PlanContext) -> None:
    if any(each.mark for each in on.values()):
        for host, each in on.items():
            if each.mark is None or each.mark.owner != context.mark.owner:
                raise Refusal(
                    f"{CONF} on {host} names a license server, and not by {context.mark.address}",
                    field="hosts",
                    next="take that out there, or name another machine",
                )
    if without := [host for host in spec.hosts if host in facts.found and not facts.found[host].service]:
        raise Refusal(
            f"there is no {SERVICE} on {', '.join(without)}",
            field="hosts",
            why="it comes with NVIDIA's vGPU guest driver",
            next="install the driver there, or in the template",
        )


def _note(before: Values, *, made: bool) -> str:
    return f"before={base64.b64encode(json.dumps(before, sort_keys=True).encode()).decode()}" + (
        "\nmade=yes" if made else ""
    )


def _remove(state: State, hosts: tuple[str, ...]) -> Remove:
    texts = {}
    for host in hosts:
        text = merged(state.on[host].text, state.on[host].before)
        texts[host] = "" if state.on[host].made and not read(text) else text
    return Remove(
        names=", ".join(hosts), machines={host: state.machines[host] for host in hosts}, texts=texts
    )
