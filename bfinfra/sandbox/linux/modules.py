"""Ansible's modules as the machines understand them: copy, file, stat, command, systemd_service and user,
with check mode. Others are refused by name.

A module comes as a Python program with its arguments inside (ansible-core 2.19). It is read, never run.
"""

from __future__ import annotations

import ast
import json
import posixpath
import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bfinfra.sandbox.linux.machine import Machine, Node, Service
from bfinfra.sandbox.linux.output import Output
from bfinfra.sandbox.linux.programs import Programs

_parsing = threading.Lock()
"""CPython 3.11 counts the depth of what it parses in one place for all threads: two at once, and either ends
with a SystemError.
"""
IGNORED = (
    "content",
    "follow",
    "backup",
    "force",
    "unsafe_writes",
    "validate",
    "directory_mode",
    "local_follow",
    "checksum",
    "decrypt",
)
"""Of copy and file: what changes nothing here."""


@dataclass(frozen=True)
class Sent:
    """A module and its arguments; `check`: it may change nothing."""

    name: str
    arguments: Mapping[str, Any]
    check: bool


def sent(program: bytes) -> Sent | str:
    """The program's name and version; or why they can't be read."""
    try:
        with _parsing:
            whole = ast.parse(program)
        calls = [
            node
            for node in ast.walk(whole)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_ansiballz_main"
        ]
        words = {word.arg: word.value for word in calls[0].keywords}
        name, params = ast.literal_eval(words["ansible_module"]), ast.literal_eval(words["params"])
        arguments = json.loads(params)["ANSIBLE_MODULE_ARGS"]
    except (SyntaxError, ValueError, KeyError, IndexError):
        return "the sandbox's machines run no Python; modules of ansible-core 2.19 they know by what is sent"
    given = {
        key: value
        for key, value in arguments.items()
        if not key.startswith("_") and key not in IGNORED and value is not None
    }
    if "_raw_params" in arguments:
        given["cmd"] = arguments["_raw_params"]
    return Sent(str(name).rpartition(".")[2], given, bool(arguments.get("_ansible_check_mode")))


def run(call: Sent, machine: Machine, programs: Programs) -> Output:
    """Run the module and return its answer; check mode changes nothing."""
    act = MODULES.get(call.name)
    if expanded := _expanded(call.arguments):
        return _answer(_failed(f"the sandbox's machines expand no variable and no ~, as in {expanded!r}"))
    if act is None:
        return _answer(
            {
                "failed": True,
                "msg": f"the sandbox's machines have no module {call.name}; they have {', '.join(MODULES)}",
            }
        )
    found = act(machine.copy() if call.check else machine, call, programs)
    return _answer(found)


def _answer(found: Mapping[str, object]) -> Output:
    return Output(
        json.dumps({"changed": False, **found, "invocation": {}}) + "\n", 1 if found.get("failed") else 0
    )


def _expanded(given: Mapping[str, Any]) -> str:
    """The first argument in which Ansible would put something else for a variable or a `~`; "" if there is
    none. Here that ends the task: no role means it.
    """
    paths = [str(given[name]) for name in ("path", "dest", "creates", "removes") if given.get(name)]
    words = [str(word) for word in given.get("argv") or ()] if given.get("expand_argument_vars", True) else []
    return next((each for each in (*paths, *words) if "$" in each or each.startswith("~")), "")


def _failed(why: str) -> dict[str, Any]:
    return {"failed": True, "msg": why}


def _stat(machine: Machine, call: Sent, _: Programs) -> dict[str, Any]:
    path = posixpath.normpath(call.arguments["path"])
    node = machine.files.get(path)
    if node is None:
        return {"stat": {"exists": False}}
    plain = node.content is not None
    found = {
        "exists": True,
        "path": path,
        "isreg": plain,
        "isdir": not plain,
        "islnk": False,
        "mode": f"{node.mode:04o}",
        "pw_name": node.owner,
        "gr_name": node.group,
        "size": len(node.content or b""),
        "uid": 0,
        "gid": 0,
        "writeable": True,
        "readable": True,
    }
    if plain and call.arguments.get("get_checksum", True):
        found["checksum"] = machine.digest(
            path, str(call.arguments.get("checksum_algorithm") or "sha1").replace("-", "")
        )
    return {"stat": found}


def _owned(node: Node, call: Sent) -> Node:
    """As the arguments want it."""
    mode = call.arguments.get("mode")
    wanted = node.mode if mode is None else int(str(mode), 8) if isinstance(mode, str) else int(mode)
    return replace(
        node,
        mode=wanted,
        owner=str(call.arguments.get("owner", node.owner)),
        group=str(call.arguments.get("group", node.group)),
    )


def _copy(machine: Machine, call: Sent, _: Programs) -> dict[str, Any]:
    content, dest = machine.read(call.arguments["src"]), posixpath.normpath(call.arguments["dest"])
    if content is None:
        return _failed(f"Source {call.arguments['src']} not found")
    before = machine.files.get(dest)
    wanted = _owned(replace(before or Node(b""), content=content), call)
    if why := machine.write(dest, wanted):
        return _failed(f"Destination directory {why}")
    return {
        "changed": wanted != before,
        "dest": dest,
        "checksum": machine.digest(dest, "sha1"),
        "mode": f"{wanted.mode:04o}",
    }


def _file(machine: Machine, call: Sent, _: Programs) -> dict[str, Any]:
    path, state = (
        posixpath.normpath(call.arguments.get("path") or call.arguments["dest"]),
        call.arguments.get("state", "file"),
    )
    before = machine.files.get(path)
    if state == "absent":
        return {"changed": machine.remove(path), "path": path, "state": "absent"}
    if state == "directory":
        changed = False
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            each = "/" + "/".join(parts[:depth])
            if each not in machine.files:
                machine.files[each] = _owned(Node(None, 0o755), call)
                changed = True
    elif before is None:
        return _failed(f"file ({path}) is absent, cannot continue")
    node = machine.files[path]
    machine.files[path] = _owned(node, call)
    return {"changed": machine.files[path] != before, "path": path, "state": state} | (
        {"changed": True} if state == "directory" and changed else {}
    )


def _command(machine: Machine, call: Sent, programs: Programs) -> dict[str, Any]:
    given = call.arguments
    argv = [str(word) for word in given.get("argv") or shlex.split(given.get("cmd", ""))]
    if (path := given.get("creates")) and posixpath.normpath(path) in machine.files:
        return {
            "cmd": argv,
            "rc": 0,
            "stdout": f"skipped, since {path} exists",
            "stderr": "",
            "msg": "Did not run command",
        }
    if (path := given.get("removes")) and posixpath.normpath(path) not in machine.files:
        return {
            "cmd": argv,
            "rc": 0,
            "stdout": f"skipped, since {path} does not exist",
            "stderr": "",
            "msg": "Did not run command",
        }
    if call.check:
        return {
            "cmd": argv,
            "rc": 0,
            "stdout": "",
            "stderr": "",
            "skipped": True,
            "msg": "Command would have run if not in check mode",
        }
    stdin = str(given.get("stdin") or "")
    stdin += "\n" if stdin and given.get("stdin_add_newline", True) else ""
    done = programs.run(machine, argv, "root", stdin)
    text, code = done.text.rstrip("\n"), done.code
    found = {
        "changed": True,
        "cmd": argv,
        "rc": code,
        "stdout": "" if code else text,
        "stderr": text if code else "",
        "delta": "0:00:00",
        "start": "",
        "end": "",
    }
    return found | ({"failed": True, "msg": "non-zero return code"} if code else {})


def _systemd(machine: Machine, call: Sent, _: Programs) -> dict[str, Any]:
    given = call.arguments
    name = given.get("name")
    if name is None:
        return {"changed": False}
    unit = name if "." in name else f"{name}.service"
    before, known = machine.services.get(unit), machine.has_unit(unit)
    if not known and before is None:
        return _failed(f"Could not find the requested service {name}: host")
    state = given.get("state")
    now = Service(**vars(before)) if before else Service()
    now.active = {"started": True, "restarted": True, "stopped": False}.get(str(state), now.active)
    now.enabled = now.enabled if given.get("enabled") is None else bool(given["enabled"])
    if state == "started" and not known and before is None:
        return _failed(f"Unit {unit} not found")
    machine.services[unit] = now
    if not (now.active or now.enabled):
        del machine.services[unit]
    return {
        "changed": state == "restarted" or now != (before or Service()),
        "name": name,
        "state": state,
        "status": {},
    }


def _user(machine: Machine, call: Sent, _: Programs) -> dict[str, Any]:
    name, groups = call.arguments["name"], call.arguments.get("groups") or []
    wanted = tuple(groups.split(",") if isinstance(groups, str) else groups)
    if name not in machine.users:
        return _failed(f"the sandbox's machines make no users: there is no {name}")
    before = machine.groups.get(name, ())
    kept = before if call.arguments.get("append") else ()
    machine.groups[name] = tuple(dict.fromkeys((*kept, *wanted)))
    if not machine.groups[name]:
        del machine.groups[name]
    return {"changed": machine.groups.get(name, ()) != before, "name": name}


MODULES: dict[str, Callable[[Machine, Sent, Programs], dict[str, Any]]] = {
    "stat": _stat,
    "copy": _copy,
    "file": _file,
    "command": _command,
    "systemd_service": _systemd,
    "systemd": _systemd,
    "user": _user,
}
