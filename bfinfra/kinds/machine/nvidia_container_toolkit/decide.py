"""The steps of the toolkit on machines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bfinfra.kinds.machine.base import (
    OnMachines,
    adopted,
    others,
    record_path,
    set_up_changes,
    while_away,
    whole_text,
)
from bfinfra.kinds.machine.nvidia_container_toolkit.runtime import (
    FILES,
    UNITS,
    Before,
    existing,
    merged,
    undone,
    wanted,
)
from bfinfra.kinds.machine.nvidia_container_toolkit.spec import FOLDERS, Spec
from bfinfra.kinds.machine.nvidia_container_toolkit.state import NAME, Installed, State, ToolkitFacts, note
from bfinfra.kinds.sent_files import CACHE, sent_name
from bfinfra.model import compare
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.step import Disruption, Step

NOTHING = Installed(None)


@dataclass(frozen=True, kw_only=True)
class SetUp(OnMachines):
    """set NVIDIA's container toolkit up on {names}"""

    todo: Mapping[str, Mapping[str, Any]]
    """By machine: whether to install, the desired configurations of the runtimes, the lines of its record
    besides the mark.
    """
    common: Mapping[str, Any]
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Restart(SetUp):
    """set NVIDIA's container toolkit up on {names}, and restart docker there"""

    disruption = Disruption.POWER_CYCLE
    why = "docker restarts, and the containers that it runs stop"


@dataclass(frozen=True, kw_only=True)
class Remove(OnMachines):
    """take NVIDIA's container toolkit off {names}"""

    todo: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RemoveRestart(Remove):
    """take NVIDIA's container toolkit off {names}, and restart docker there"""

    disruption = Disruption.POWER_CYCLE
    why = "docker restarts, and the containers that it runs stop"


def steps(spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: install where something differs, remove where it is no longer wanted."""
    if spec is None:
        return () if state is None else (_remove(state, tuple(state.on)),)
    if state is not None and compare.adopting(state.mark):
        notes = {host: _as_it_is(spec, found) for host, found in state.on.items() if host in spec.hosts}
        return adopted(spec, state, context, record_path(NAME), notes)
    installed = [found.package for host, found in state.on.items() if host in spec.hosts] if state else []
    return while_away(context, installed, lambda context: _steps(spec, state, context), SetUp)


def _steps(spec: Spec, state: State | None, context: PlanContext) -> Sequence[Step]:
    _check(spec, state, context)
    gone = (
        tuple(host for host, found in state.on.items() if host not in spec.hosts and found.mark)
        if state
        else ()
    )
    return (*_set_up(spec, state, context), *((_remove(state, gone),) if state and gone else ()))


def _check(spec: Spec, state: State | None, context: PlanContext) -> None:
    facts: ToolkitFacts = context.facts
    if not facts.packages.get(context.name):
        raise Refusal(
            f"{', '.join(each.text for each in spec.files())} can't be read",
            field="packages" if spec.packages else "repository",
            next="download it, or correct the path",
        )
    on = state.on if state else {}
    for host in others(on, context.mark):
        if host in spec.hosts:
            raise Refusal(
                f"the toolkit on {host} does not belong to {context.mark.address}",
                field="hosts",
                why="bfinfra did not install it for this resource",
                next="remove it there, or name another machine",
            )
    if without := [
        host
        for host in spec.hosts
        if host in facts.found and not facts.found[host].services.get(spec.runtime)
    ]:
        raise Refusal(
            f"there is no {UNITS[spec.runtime]} on {', '.join(without)}",
            field="runtime",
            next="install the container runtime there, or in the template",
        )


def _set_up(spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: ToolkitFacts = context.facts
    package, mark = (facts.packages[context.name], context.mark.committed(spec.applied()))
    todo: dict[str, dict[str, Any]] = {}
    now, then = {}, {}
    for host in spec.hosts:
        found = facts.found.get(host, NOTHING)
        for runtime in sorted({spec.runtime, found.runtime} & FILES.keys()):
            whole_text(found.configs.get(runtime), FILES[runtime], host)
        values = wanted(spec, found.configs.get(spec.runtime))
        there = existing(spec.runtime, found.configs.get(spec.runtime), values)
        installed = found.package == package and (
            found.kept or (found.program and spec.repository is not None and not spec.repository.version)
        )
        now[host] = {
            "package": package[:12] if installed else None,
            "runtime": _shown(there),
            "service": _runs(found.services.get(spec.runtime)),
        }
        then[host] = {"package": package[:12], "runtime": _shown(values), "service": "running"}
        if found.mark != mark or now[host] != then[host]:
            todo[host] = {"install": not installed, **_configured(spec, found, there, values)}
    if not todo:
        return
    stops = any(
        facts.found.get(host, NOTHING).containers and _restarts_docker(each) for host, each in todo.items()
    )
    step = Restart if stops else SetUp
    yield step(
        names=", ".join(todo),
        machines=facts.of(todo),
        todo=todo,
        common=_common(spec, package),
        mark=mark,
        changes=set_up_changes(spec, state, now, then),
    )


def _configured(
    spec: Spec,
    found: Installed,
    there: Mapping[tuple[str, ...], object],
    values: Mapping[tuple[str, ...], object],
) -> dict[str, Any]:
    """The desired configurations of the runtimes, and the earlier values for the record. A runtime that is no
    longer named gets its own configuration back.
    """
    text, configs = found.configs.get(spec.runtime), []
    before = Before(there, made=text is None)
    if found.mark and found.runtime == spec.runtime:
        before = Before({**there, **found.before.values}, made=found.before.made)
        values = {
            **{path: value for path, value in found.before.values.items() if path not in values},
            **values,
        }
    elif found.mark and found.runtime in FILES:
        configs.append(
            _config(
                found.runtime, found, undone(found.runtime, found.configs.get(found.runtime), found.before)
            )
        )
    configs.append(_config(spec.runtime, found, merged(spec.runtime, text, values), runs=True))
    return {"configs": configs, "note": f"runtime={spec.runtime}\nbefore={note(before.encode())}"}


def _as_it_is(spec: Spec, found: Installed) -> tuple[str, ...]:
    """The lines of the record of a toolkit that somebody else set up: its removal leaves the runtime's values
    as they are now.
    """
    values = wanted(spec, found.configs.get(spec.runtime))
    there = existing(spec.runtime, found.configs.get(spec.runtime), values)
    return *note_of(spec.form, _common(spec, "")["files"]), _configured(spec, found, there, values)["note"]


def note_of(form: str, files: Iterable[str]) -> tuple[str, str]:
    """The first lines of a record besides the mark: what the packages are."""
    return f"form={form}", f"files={','.join(files)}"


def _config(runtime: str, found: Installed, text: str, *, runs: bool = False) -> dict[str, Any]:
    """The variables for one runtime. `runs`: its service must run in any case; else it is restarted only if
    the text changes.
    """
    return {
        "path": FILES[runtime],
        "text": text,
        "unit": UNITS[runtime],
        "runs": runs,
        "restart": text != (found.configs.get(runtime) or ""),
    }


def _restarts_docker(todo: Mapping[str, Any]) -> bool:
    return any(config["restart"] and config["unit"] == UNITS["docker"] for config in todo["configs"])


def _common(spec: Spec, package: str) -> dict[str, Any]:
    """The role's variables that all machines share."""
    given = spec.repository
    listed = f"{FOLDERS[spec.form]}/{sent_name(given.file.text)}" if given else ""
    files = (
        [listed, *([given.key_path] if given.key else [])]
        if given
        else [f"{CACHE}/{sent_name(each.text)}" for each in spec.packages]
    )
    name = (
        ""
        if given is None
        else given.package
        if not given.version
        else f"{given.package}{'=' if spec.form == 'deb' else '-'}{given.version}"
    )
    return {
        "form": spec.form,
        "package_sha256": package,
        "program": spec.program,
        "files": files,
        "package": name,
        "packages": [str(each.path) for each in spec.packages],
        "repository": {
            "src": str(given.file.path),
            "dest": listed,
            "key": str(given.key.path) if given.key else "",
            "key_path": given.key_path,
        }
        if given
        else {},
    }


def _shown(values: Mapping[tuple[str, ...], object]) -> dict[str, Any]:
    """The values for people: dots between the keys, without the plug-in's long name."""
    return {
        ".".join(part for part in path if part != "plugins" and not part.startswith("io.containerd.")): value
        for path, value in values.items()
    }


def _runs(service: str | None) -> str | None:
    return "running" if service == "active" else service or None


def _remove(state: State, hosts: tuple[str, ...]) -> Remove:
    todo: dict[str, dict[str, Any]] = {}
    for host in hosts:
        found, configs = state.on[host], list[dict[str, Any]]()
        whole_text(found.configs.get(found.runtime), FILES.get(found.runtime, ""), host)
        if found.runtime in FILES:
            configs.append(
                _config(
                    found.runtime,
                    found,
                    undone(found.runtime, found.configs.get(found.runtime), found.before),
                )
            )
        todo[host] = {
            "configs": configs,
            "form": found.noted.get("form", ""),
            "files": [path for path in found.noted.get("files", "").split(",") if path],
        }
    stops = any(state.on[host].containers and _restarts_docker(each) for host, each in todo.items())
    return (RemoveRestart if stops else Remove)(
        names=", ".join(hosts), machines={host: state.machines[host] for host in hosts}, todo=todo
    )
