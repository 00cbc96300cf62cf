"""The steps of FlexDirect on machines. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.formats import systemd
from bfinfra.kinds.machine.base import OnMachines, adopted, check_owner, record_path, while_away
from bfinfra.kinds.machine.flexdirect_host.spec import PACKAGED, Scheduler, Spec, form
from bfinfra.kinds.machine.flexdirect_host.state import NAME, FlexDirectHostFacts, Installed, State
from bfinfra.kinds.sent_files import sent_name
from bfinfra.model import compare
from bfinfra.model.awaited import held
from bfinfra.model.compare import differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step

NOTHING = Installed(None)


@dataclass(frozen=True, kw_only=True)
class SetUp(OnMachines):
    """set FlexDirect up on {names}"""

    todo: Mapping[str, Mapping[str, Any]]
    """By machine: whether to install and to init, and whether its record says that work is unfinished."""
    package: str
    package_sha256: str
    uninstall: tuple[str, ...]
    license: Secret | None
    license_by: str
    unit: str
    mark: Mark
    over: str = ""
    """Machines where another installer's program stays under the new one."""

    def title(self) -> str:
        """The title, with what stays."""
        return super().title() + (
            f"; over what an installer put on {self.over}, as no uninstall was given for that"
            if self.over
            else ""
        )


@dataclass(frozen=True, kw_only=True)
class Restart(SetUp):
    """set FlexDirect up on {names}, and restart its scheduler there"""

    disruption = Disruption.POWER_CYCLE
    why = "the scheduler restarts, and what uses its GPUs then loses them"


@dataclass(frozen=True, kw_only=True)
class Remove(OnMachines):
    """take FlexDirect off {names}"""

    packages: Mapping[str, str]
    """By machine: name of the file that was installed."""
    uninstall: Mapping[str, Sequence[str]]
    """By machine: the command that uninstalls what an installer installed."""

    def title(self) -> str:
        """The title, with what stays."""
        stays = ", ".join(
            host
            for host, file in self.packages.items()
            if form(file) == "script" and not self.uninstall[host]
        )
        return super().title() + (
            f"; the program itself stays on {stays}: an installer installed it, and no uninstall was given"
            if stays
            else ""
        )


@dataclass(frozen=True, kw_only=True)
class Anew(Remove):
    """take FlexDirect off {names}, where it comes in another form now"""

    disruption = Disruption.POWER_CYCLE
    why = "the scheduler stops, and what uses its GPUs then loses them"


def unit_text(scheduler: Scheduler | None) -> str:
    """The systemd unit; "" without a scheduler."""
    if scheduler is None:
        return ""
    words = ["/usr/bin/flexdirect", "resource_scheduler"]
    words += ["-n", str(scheduler.gpus)] if scheduler.gpus else []
    words += ["-d", ",".join(scheduler.devices)] if scheduler.devices else []
    words += ["-l", scheduler.address] if scheduler.address else []
    words += ["-s", str(scheduler.port)]
    return (
        "# Written by bfinfra: change the site, not this file.\n[Unit]\nDescription=FlexDirect resource "
        "scheduler\nAfter=network-online.target\nWants=network-online.target\n\n"
        f"[Service]\nExecStart={systemd.command(words)}"
        "\nRestart=on-failure\nRestartSec=5\n\n[Install]\nWantedBy=multi-user.target\n"
    )


def steps(spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: install where something differs, remove where it is no longer wanted."""
    if spec is None:
        return () if state is None else (_remove(state, tuple(state.on)),)
    if state is not None and compare.adopting(state.mark):
        lines = note(str(spec.package.path), spec.uninstall)
        return adopted(spec, state, context, record_path(NAME), dict.fromkeys(spec.hosts, lines))
    installed = [found.package for host, found in state.on.items() if host in spec.hosts] if state else []
    found = while_away(context, installed, lambda context: _steps(spec, state, context), SetUp)
    name = context.name
    if name in context.facts.unlicensed and any(isinstance(step, SetUp) for step in found):
        field, problem = context.facts.unlicensed[name]
        raise held(problem, field, found)
    return found


def _steps(spec: Spec, state: State | None, context: PlanContext) -> Sequence[Step]:
    facts: FlexDirectHostFacts = context.facts
    name = context.name
    _check(name, spec, state, facts, context)
    gone = (
        tuple(host for host, found in state.on.items() if host not in spec.hosts and found.mark)
        if state
        else ()
    )
    return (
        *_make_way(spec, state),
        *_set_up(name, spec, state, facts, context),
        *((_remove(state, gone),) if state and gone else ()),
    )


def note(package: str, uninstall: Sequence[str]) -> tuple[str, ...]:
    """The lines of a record besides the mark and the license."""
    words = (f"uninstall={json.dumps(uninstall)}",) if uninstall else ()
    return f"package={sent_name(package)}", *words


def _check(
    name: str, spec: Spec, state: State | None, facts: FlexDirectHostFacts, context: PlanContext
) -> None:
    if not facts.packages.get(name):
        raise Refusal(
            f"the package {spec.package.text} can't be read",
            field="package",
            next="download it, or correct the path",
        )
    if wrong := sorted(
        f"{host} runs {facts.os[host]}"
        for host in spec.hosts
        if spec.os and host in facts.os and not f"{facts.os[host]} ".startswith(f"{spec.os} ")
    ):
        raise Refusal(
            f"{', '.join(wrong)}, and the containers are {spec.os}",
            field="os",
            why="FlexDirect needs the same operating system on host and container",
            next="name hosts of that system, or images of theirs",
        )
    on = state.on if state else {}
    strange = sorted(host for host, found in on.items() if host in spec.hosts and not found.mark)
    if strange and any(found.mark for found in on.values()):
        raise Refusal(
            f"FlexDirect is on {', '.join(strange)} already, and bfinfra did not install it",
            field="hosts",
            next=(
                "remove it there, or give these machines a flexdirect_host of their own and adopt it with "
                "bfinfra adopt"
            ),
        )
    check_owner(on, spec.hosts, context.mark, "hosts")


def _make_way(spec: Spec, state: State | None) -> Sequence[Remove]:
    """Removal of a program that was installed in another form than the desired one, if that is possible."""
    if state is None:
        return ()
    ours = {
        host: found for host, found in state.on.items() if host in spec.hosts and found.mark and found.file
    }
    other = {
        host: found
        for host, found in ours.items()
        if form(found.file) != form(spec.package.text) and (form(found.file) in PACKAGED or found.uninstall)
    }
    step = Anew if any(found.service.startswith("running") for found in other.values()) else Remove
    return (_remove(state, tuple(other), step),) if other else ()


def _set_up(
    name: str, spec: Spec, state: State | None, facts: FlexDirectHostFacts, context: PlanContext
) -> Sequence[Step]:
    on = {host: (state.on.get(host, NOTHING) if state else NOTHING) for host in spec.hosts}
    wanted, unit = context.mark.committed(spec.applied()), unit_text(spec.scheduler)
    package = facts.packages[name]
    now = {
        host: _shown(found, host in facts.licensed.get(name, frozenset()), spec) for host, found in on.items()
    }
    then = {host: _wanted(spec, package, unit) for host in spec.hosts}
    fresh = all(not found.there for found in on.values())
    world = differences({"on": {} if fresh else now}, {"on": then}) if not fresh else ()
    pending = {
        host for host, found in on.items() if found.mark is None or found.mark.applied != wanted.applied
    }
    hosts = tuple(host for host in spec.hosts if host in pending or now[host] != then[host])
    if not hosts:
        return ()
    mark = next((found.mark for found in on.values() if found.mark), None)
    changes = differences(None, spec.applied()) if fresh else compare.changes(spec, mark, world)
    todo = {
        host: {
            "install": on[host].package != package,
            "init": bool(spec.license) and now[host]["license"] != "initialised",
            "unfinished": host in pending or now[host] != then[host],
        }
        for host in hosts
    }
    restarts = any(
        on[host].service.startswith("running")
        and (on[host].unit != unit or todo[host]["install"] or todo[host]["init"])
        for host in hosts
    )
    step = Restart if restarts else SetUp
    over = ", ".join(host for host in hosts if _stays(on[host], spec))
    return (
        step(
            names=", ".join(hosts),
            machines=facts.of(hosts),
            todo=todo,
            package=str(spec.package.path),
            package_sha256=package,
            uninstall=spec.uninstall,
            license=spec.license,
            license_by=spec.license_by,
            unit=unit,
            mark=wanted,
            over=over,
            changes=changes,
        ),
    )


def _stays(found: Installed, spec: Spec) -> bool:
    """Return whether an installer installed a program that nothing can remove, and the desired form is
    another.
    """
    return (
        bool(found.mark and found.file)
        and form(found.file) == "script" != form(spec.package.text)
        and not found.uninstall
    )


def _shown(found: Installed, licensed: bool, spec: Spec) -> dict[str, str | None]:
    """The fields of one machine, for people."""
    return {
        "package": _short(found.package),
        "license": ("initialised" if licensed else None) if spec.license else None,
        "scheduler": _command(found.unit),
        "unit": _short_text(found.unit),
        "service": found.service if found.unit else None,
    }


def _wanted(spec: Spec, package: str, unit: str) -> dict[str, str | None]:
    return {
        "package": _short(package),
        "license": "initialised" if spec.license else None,
        "scheduler": _command(unit),
        "unit": _short_text(unit),
        "service": "running" if unit else None,
    }


def _command(unit: str) -> str | None:
    return next(
        (line.removeprefix("ExecStart=") for line in unit.splitlines() if line.startswith("ExecStart=")), None
    )


def _short(digest: str) -> str | None:
    return digest[:12] or None


def _short_text(text: str) -> str | None:
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else None


def _remove(state: State, hosts: tuple[str, ...], step: type[Remove] = Remove) -> Remove:
    return step(
        names=", ".join(hosts),
        machines={host: state.machines[host] for host in hosts},
        packages={host: state.on[host].file for host in hosts},
        uninstall={host: state.on[host].uninstall for host in hosts},
    )
