"""The output of `flexdirect` in a container. The program and its configuration are the node's, mounted from
/etc/bitfusionio.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from posixpath import normpath

from bfinfra.sandbox.kubernetes.bitfusion_log import of_command, printed
from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.outside import Host

COMMAND = re.compile(r"\bflexdirect\s+(?P<verb>run|health)\b(?P<rest>.*)", re.DOTALL)
FOLDER = "/etc/bitfusionio"
CONF = f"{FOLDER}/servers.conf"
PORT = 56001
NO_PROGRAM = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc "
    "create failed: unable to start container process: "
    'exec: "flexdirect": executable file not found in $PATH: unknown'
)
BASE = ("/etc", "/home", "/opt", "/root", "/srv", "/usr", "/var", "/var/lib", "/var/log")
SYSTEM = ("/dev", "/proc", "/run", "/sys", "/usr/lib", "/var/run")
"""The folders that every Linux has: BASE with their contents, SYSTEM only by name."""


@dataclass(frozen=True)
class Call:
    """`flexdirect VERB`, and the words after it; `by_shell`: a shell looks for the program."""

    verb: str
    rest: str
    by_shell: bool


def called(container: Object) -> Call | None:
    """Return the request that a container makes of FlexDirect; None where it makes none."""
    words = [str(each) for each in [*(container.get("command") or []), *(container.get("args") or [])]]
    found = COMMAND.search(" ".join(words))
    return Call(found["verb"], found["rest"], words[0] != "flexdirect") if found else None


def log_of(
    call: Call, pod: Object, container: Object, host: Host | None, when: str
) -> tuple[list[str], bool]:
    """The lines, and whether it went well."""
    if host is None or not host.installed or not _mounted(pod, container):
        if call.by_shell:
            return ["/bin/bash: line 1: flexdirect: command not found"], False
        return [NO_PROGRAM], False
    if call.verb == "health":
        return host.health(), True
    conf = host.read(CONF)
    lines = (line.partition("#")[0].strip() for line in (conf or "").splitlines())
    listed = [line if ":" in line else f"{line}:{PORT}" for line in lines if line]
    if why := _lacks(host, conf, listed):
        return [f"[ERROR] {when} {why}"], False
    return printed(of_command(call.rest), listed, host.servers(), when)


def _lacks(host: Host, conf: str | None, listed: list[str]) -> str:
    """Return what `run` needs and the node doesn't have, or ""."""
    if not host.licensed:
        return "License is not initialized on this host: run flexdirect init"
    if conf is None:
        return f"open {CONF}: no such file or directory"
    return "" if listed else f"{CONF}: no servers"


def _mounted(pod: Object, container: Object) -> bool:
    """Return whether the container sees the node's folder where the program looks."""
    folders = {
        each["name"]: normpath(dig(each, "hostPath", "path", default="") or "none")
        for each in dig(pod, "spec", "volumes", default=[])
    }
    return any(
        normpath(each["mountPath"]) == FOLDER and folders.get(each["name"]) == FOLDER
        for each in container.get("volumeMounts") or []
    )


def folders_of(pod: Object) -> list[tuple[str, str]]:
    """The volumes that must be folders of the node, with their paths."""
    return [
        (each["name"], str(each["hostPath"]["path"]))
        for each in dig(pod, "spec", "volumes", default=[])
        if dig(each, "hostPath", "type") == "Directory"
    ]


def has_folder(host: Host | None, path: str, kubelet: str) -> bool:
    """Return whether a node has this path: its kubelet's, the system's own, or its machine's. A node that is
    no machine of the world has no others.
    """
    wanted = normpath(path)
    own = (*SYSTEM, normpath(kubelet))
    return (
        wanted in ("/", *BASE)
        or any(wanted == each or wanted.startswith(f"{each}/") for each in own)
        or (host is not None and host.folder(wanted))
    )
