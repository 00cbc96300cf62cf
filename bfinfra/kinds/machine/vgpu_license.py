"""Licensing of vGPU clients on Linux machines: gridd.conf, and the service that reads it. (RDG for PVRDMA:
licensed NVIDIA GRID, license server on port 7070.)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, model_validator

from bfinfra.kinds.capabilities import LICENSE, on_machines
from bfinfra.kinds.linux import Answers, Commands
from bfinfra.kinds.machine.base import (
    Adopt,
    LinuxSoftware,
    OnHosts,
    OnMachines,
    SoftwareFacts,
    adopted,
    others,
    read_record,
    record_path,
    record_texts,
    service,
    service_state,
    set_up_changes,
    text_of,
    whole_text,
)
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.choice import each_once
from bfinfra.model.compare import differences
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext
from bfinfra.model.document import Document
from bfinfra.model.errors import BfinfraError, Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import Readiness, Ready, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref
from bfinfra.model.ssh import HostAddress
from bfinfra.model.step import Step

NAME, CONF, SERVICE = "vgpu_license", "/etc/nvidia/gridd.conf", "nvidia-gridd.service"
LOOK = {"record": ("cat", record_path(NAME)), "conf": ("cat", CONF), "service": service(SERVICE)}
Port = Annotated[int, Field(ge=1, le=65535)]
Values = Mapping[str, str | None]
"""Key of gridd.conf → its value; None if it isn't set."""


class Spec(resource.Spec):
    """The desired state of the license server of one or more machines."""

    hosts: Annotated[tuple[Annotated[str, Ref("linux_host")], ...], Field(min_length=1)]
    """The machines. They need NVIDIA's guest driver, which contains nvidia-gridd."""
    server: HostAddress
    """License server."""
    port: Port = 7070
    """Its port."""
    backup: HostAddress | None = None
    """Second license server."""
    backup_port: Port = 7070
    """Its port."""
    feature_type: Literal["0", "1", "2", "4"] = "4"
    """The licensed product: 0 none, 1 vGPU (by its type), 2 RTX Virtual Workstation, 4 Virtual Compute
    Server.
    """
    licensed: bool = True
    """Ready only when `nvidia-smi -q` reports a license on each machine."""

    @model_validator(mode="after")
    def _each_once(self) -> Spec:
        each_once("hosts", self.hosts)
        return self

    def takes(self, name: str) -> Iterator[Taken]:
        """The vGPU license of each of its machines."""
        yield from (
            conflict.thing(f"hosts.{index}", f"the vGPU license on {host}", "machine")
            for index, host in enumerate(self.hosts)
        )

    def ways(self, addresses: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, int]]]:
        """The connections to the license servers."""
        servers = [(self.server, self.port), *([(self.backup, self.backup_port)] if self.backup else [])]
        yield from ((host, server) for host in self.hosts for server in servers)

    def values(self) -> dict[str, str]:
        """Its settings, by their keys in gridd.conf."""
        found = {"ServerAddress": self.server, "ServerPort": str(self.port), "FeatureType": self.feature_type}
        return found | (
            {"BackupServerAddress": self.backup, "BackupServerPort": str(self.backup_port)}
            if self.backup
            else {}
        )

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Licensed vGPUs, which programs can use."""
        return on_machines(LICENSE, self.hosts)


@dataclass(frozen=True, slots=True)
class Installed:
    """The license settings of one machine. `text`: its gridd.conf, None if there is none; `before`: the
    values of bfinfra's keys before it set them; `made`: whether bfinfra made the file; `service`: its state,
    in systemd's words.
    """

    mark: Mark | None
    text: str | None = None
    before: Values = field(default_factory=dict)
    made: bool = False
    service: str = ""

    @property
    def there(self) -> bool:
        """True if a license server is named there."""
        return bool(self.mark or read(self.text).get("ServerAddress"))


class State(OnHosts[Installed]):
    """The license settings of each of its machines."""


VgpuLicenseFacts = SoftwareFacts[Installed]


@dataclass(frozen=True, kw_only=True)
class SetUp(OnMachines):
    """name the license server on {names}"""

    texts: Mapping[str, str]
    notes: Mapping[str, str]
    """By machine: the lines of its record besides the mark."""
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Remove(OnMachines):
    """give gridd.conf on {names} back"""

    texts: Mapping[str, str]
    """By machine: the earlier text; "" = there was no file."""


class VgpuLicense(LinuxSoftware[Spec, State, Installed]):
    """The license server of vGPUs on Linux machines."""

    document = Document.PVRDMA
    step_types = (SetUp, Adopt, Remove)
    name = role = NAME

    def commands(self, host: str, specs: Sequence[Spec]) -> Commands:
        """Reads its record, the file and the service."""
        return LOOK

    def read(self, host: str, answers: Answers) -> Installed:
        """From the machine's answers."""
        return _read(answers)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Writes the settings that differ; restores the earlier ones when they are no longer wanted."""
        if spec is None:
            return () if state is None else (_remove(state, tuple(state.on)),)
        if state is not None and compare.adopting(state.mark):
            notes = {
                host: (_noted(found, spec.values()),)
                for host, found in state.on.items()
                if host in spec.hosts
            }
            return adopted(spec, state, context, record_path(NAME), notes)
        return tuple(_decide(spec, state, context))

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when `nvidia-smi -q` reports Licensed on each machine."""
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
            status = license_status(found["smi"].text)
            if not status.startswith("Licensed"):
                return waiting(
                    f"{machine.name} has no license: "
                    f"{status or ' '.join(found['smi'].text.split())[-200:] or 'nvidia-smi reports nothing'}"
                )
        return Readiness(Ready.READY, note=f"licensed: {', '.join(spec.hosts)}")

    def run(self, step: Step, report: kind.Report) -> None:
        """Runs one step, as one play on all its machines."""
        match step:
            case SetUp():
                self._play(
                    step,
                    {
                        host: {"text": text, **record_texts(step.mark, step.notes[host])}
                        for host, text in step.texts.items()
                    },
                )
            case Remove():
                self._play(step, {host: {"text": text} for host, text in step.texts.items()}, "remove")
            case Adopt():
                self._play(step, step.records, "begin")
            case _:
                raise AssertionError(step)


def read(text: str | None) -> dict[str, str]:
    """Keys and values of gridd.conf, without its comments."""
    pairs = (
        line.partition("=") for line in _lines(text) if "=" in line and not line.lstrip().startswith("#")
    )
    return {key.strip(): value.strip() for key, _, value in pairs}


def merged(text: str | None, values: Values) -> str:
    """The text with these values, each in its existing line if there is one. Comments and other
    lines stay.
    """
    lines, left = [], dict(values)
    for line in _lines(text):
        key = line.partition("=")[0].strip()
        if line.lstrip().startswith("#") or "=" not in line or key not in values:
            lines.append(line)
        elif (value := left.pop(key, None)) is not None:
            lines.append(f"{key}={value}")
    lines += [f"{key}={value}" for key, value in left.items() if value is not None]
    return "".join(f"{line}\n" for line in lines)


def _lines(text: str | None) -> list[str]:
    """By line feeds alone: what Unicode calls the end of a line is none for the driver."""
    lines = (text or "").split("\n")
    return lines if lines[-1] else lines[:-1]


def license_status(text: str) -> str:
    """The license status in the output of `nvidia-smi -q`: the worst of several GPUs, "" if it has none."""
    found = [
        value.strip()
        for name, _, value in (line.partition(":") for line in text.splitlines())
        if name.strip() == "License Status"
    ]
    return next((each for each in found if not each.startswith("Licensed")), found[0] if found else "")


def _read(answers: Answers) -> Installed:
    record = read_record(answers, "before", "made")
    try:
        before = json.loads(base64.b64decode(record.noted.get("before", ""), validate=True) or "{}")
    except ValueError:
        before = {}
    return Installed(
        record.mark,
        text_of(answers, "conf"),
        before,
        record.noted.get("made") == "yes",
        service_state(answers["service"]),
    )


def _decide(spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: VgpuLicenseFacts = context.facts
    on = state.on if state else {}
    _check(spec, on, facts, context)
    wanted, mark = spec.values(), context.mark.committed(spec.applied())
    now, texts, notes = {}, {}, {}
    for host in spec.hosts:
        found = facts.found.get(host, Installed(None))
        whole_text(found.text, CONF, host)
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
            notes[host] = _noted(found, wanted)
    if texts:
        whole = {host: {"values": wanted, "service": "running"} for host in spec.hosts}
        changes = set_up_changes(spec, state, now, whole)
        yield SetUp(
            names=", ".join(texts),
            machines=facts.of(texts),
            texts=texts,
            notes=notes,
            mark=mark,
            changes=changes,
        )
    leaving = tuple(host for host in on if host not in spec.hosts)
    if leaving and state:
        yield _remove(state, leaving)


def _check(spec: Spec, on: Mapping[str, Installed], facts: VgpuLicenseFacts, context: PlanContext) -> None:
    for host in others(on, context.mark):
        raise Refusal(
            f"{CONF} on {host} names a license server that does not belong to {context.mark.address}",
            field="hosts",
            next="remove it there, or name another machine",
        )
    if without := [host for host in spec.hosts if host in facts.found and not facts.found[host].service]:
        raise Refusal(
            f"there is no {SERVICE} on {', '.join(without)}",
            field="hosts",
            why="it comes with NVIDIA's vGPU guest driver",
            next="install the driver there, or in the template",
        )


def _noted(found: Installed, wanted: Mapping[str, str]) -> str:
    """The lines of a record besides the mark: the values of before."""
    there, made = read(found.text), found.made if found.mark else found.text is None
    before = {**{key: there.get(key) for key in wanted}, **(found.before if found.mark else {})}
    return f"before={base64.b64encode(json.dumps(before, sort_keys=True).encode()).decode()}" + (
        "\nmade=yes" if made else ""
    )


def _remove(state: State, hosts: tuple[str, ...]) -> Remove:
    texts = {}
    for host in hosts:
        text = merged(whole_text(state.on[host].text, CONF, host), state.on[host].before)
        texts[host] = "" if state.on[host].made and not read(text) else text
    return Remove(
        names=", ".join(hosts), machines={host: state.machines[host] for host in hosts}, texts=texts
    )
