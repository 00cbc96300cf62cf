"""The output of `bitfusion run`, and so the log of a container that uses it."""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from bfinfra.sandbox.kubernetes.container_files import ContainerFiles, FilesError
from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.outside import GpuServer

COMMAND = re.compile(r"\bbitfusion\s+run\b(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Ask:
    """GPUs that a container asks for: how many, which share of each (or MiB of each), and for what
    command.
    """

    count: int
    share: float
    memory: int
    command: str


def asked(container: Object, environment: Mapping[str, str]) -> Ask | None:
    """Return the request that a container makes of Bitfusion, by its command line or the NUM_GPUS and
    PARTIAL_GPU of its image's script; None where it makes none.
    """
    words = [str(each) for each in [*(container.get("command") or []), *(container.get("args") or [])]]
    found = COMMAND.search(" ".join(words))
    if found:
        return of_command(found["rest"])
    if environment.get("NUM_GPUS", "").isdigit():
        share = float(environment.get("PARTIAL_GPU") or 1)
        return Ask(int(environment["NUM_GPUS"]), share, 0, shlex.join(words) or "python model.py")
    return None


def of_command(rest: str) -> Ask:
    """Return the request that the words after `run` make."""
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    count, share, memory, at = 1, 1.0, 0, 0
    while at < len(words) and words[at].startswith("-"):
        option, _, value = words[at].partition("=")
        if option == "--":
            at += 1
            break
        if not value:
            at += 1
            value = words[at] if at < len(words) else ""
        if option in ("-n", "--num_gpus"):
            count = int(value)
        elif option in ("-p", "--partial"):
            share = float(value)
        elif option in ("-m", "--memory"):
            memory = int(value)
        at += 1
    return Ask(count, share, memory, " ".join(words[at:]))


def servers_of(text: str) -> list[str]:
    """The addresses in a servers.conf; [] where it can't be read (`- reachable:ip` without a blank is no
    mapping).
    """
    try:
        listed = yaml.safe_load(text)["servers"]
        return [str(each["reachable"]) for each in listed]
    except (yaml.YAMLError, KeyError, TypeError):
        return []


def places(home: str) -> tuple[str, str, str, str]:
    """The paths that a client reads: its access, its own and everybody's servers, their authority."""
    own = f"{home}/.bitfusion"
    return (
        f"{own}/client.yaml",
        f"{own}/servers.conf",
        "/etc/bitfusion/servers.conf",
        "/etc/bitfusion/tls/ca.crt",
    )


def opened(files: ContainerFiles, home: str, when: str) -> tuple[list[str], list[str]]:
    """The addresses that a client finds, none if it can't continue, and its output. It keeps its old access
    beside the new one.
    """
    client, own, shared, authority = places(home)
    try:
        content = files.read(client)
        missing = [
            path for path, there in ((client, content), (authority, files.read(authority))) if there is None
        ]
        servers = files.read(own) or files.read(shared)
    except FilesError as error:
        return [], [f"[ERROR] {when} {error}"]
    if missing:
        return [], [f"[ERROR] {when} open {path}: no such file or directory" for path in missing]
    listed = servers_of(servers or "")
    if not listed:
        return [], [f"[ERROR] {when} Failed to parse {shared}: no server is reachable"]
    lines = []
    try:
        files.rename(client, f"{client}.{when.replace('-', '').replace(':', '').rstrip('Z')}")
    except FilesError as error:
        lines.append(f"[WARN] {when} Unable to backup old client config file: {error}")
    try:
        files.write(client, content or "")
    except FilesError as error:
        return [], [*lines, f"[ERROR] {when} {error}"]
    return listed, lines


def printed(
    ask: Ask, servers: Sequence[str], up: Mapping[str, GpuServer], when: str
) -> tuple[list[str], bool]:
    """The lines, and whether GPUs were locked. `servers`: addresses in the order of servers.conf; `up`: those
    that answer.
    """
    client = str(uuid.uuid4())
    for address in servers:
        if address in up:
            return _locked(ask, address, up[address], when, client)
    lines = [f"[INFO] {when} Query server {address} to claim client id: {client}" for address in servers]
    lines += [
        (
            f"[ERROR] {when} Error contacting server {address} to verify client id: Get https://{address}"
            f"/claim_id: dial tcp {address}: i/o timeout"
        )
        for address in servers
    ]
    return [
        *lines,
        f"[ERROR] {when} Error: none of the servers responded correctly to client id claim requests.",
    ], False


def _locked(ask: Ask, address: str, server: GpuServer, when: str, client: str) -> tuple[list[str], bool]:
    head = [
        f"[INFO] {when} Query server {address} to claim client id: {client}",
        f"[INFO] {when} Query server {address} gpu availability",
        f"[INFO] {when} Query server health status",
        f"[INFO] {when} Choosing GPUs from server list [{address}]",
    ]
    if ask.count > len(server.memory):
        return [
            *head,
            f"[ERROR] {when} Error: insufficient GPUs: requested {ask.count}, available {len(server.memory)}",
        ], False
    memory = ask.memory or int(min(server.memory[: ask.count]) * ask.share)
    share = ask.share if not ask.memory else round(ask.memory / server.memory[0], 2)
    numbers = " ".join(str(number) for number in range(ask.count))
    host = address.rpartition(":")[0]
    digits = int(client.replace("-", "")[:7], 16)
    return [
        *head,
        (
            f"[INFO] {when} Requesting GPUs [{numbers}] with {memory} MiB of memory from server 0, with "
            f"version {server.version}..."
        ),
        "Requested resources:",
        f"Server List: {address}",
        "Client idle timeout: 0 min",
        (
            f"[INFO] {when} Locked {ask.count} GPUs with partial memory {share:g}, configuration saved to "
            f"'/tmp/bitfusion{digits}'"
        ),
        (
            f"[INFO] {when} Running client command '{ask.command}' on {ask.count} GPUs, with the following "
            "servers:"
        ),
        f"[INFO] {when} {host} 55001 {server.uuid} 56001 {server.version}",
    ], True
