"""Reads a world file; problems are reported by file and field."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.reading import BadWorld, read
from bfinfra.sandbox.world import Beside, World
from bfinfra.sandbox.world_places import located

DURATIONS = {  # seconds, stretched by `pace`
    "task": 1.0,
    "boot": 8.0,
    "reboot": 20.0,
    "shutdown": 3.0,
    "lease": 300.0,
    "supervisor": 10.0,
    "namespace": 4.0,
    "control_plane": 6.0,
    "worker": 4.0,
    "delete": 3.0,
    "pod": 2.0,
    "workload": 3.0,
    "volume": 1.0,
    "definition": 0.1,
    "scale_up": 10.0,
    "scale_down": 600.0,
}
LARGEST, DEEPEST = 64 << 20, 64  # bytes of a world file; collections within collections
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(path: Path, passwords: Passwords) -> World:
    """The world of a file. Raises BadWorld with the file and the field; OSError if it can't be read."""
    with path.open("rb") as stream:
        text = stream.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise BadWorld(f"{path}: larger than {LARGEST >> 20} MiB")
    try:
        _check(text)
        data = LOADER(text).get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _unreadable(path, error) from None
    with placed(path, text):
        return parse(data, passwords, str(path))


@contextlib.contextmanager
def placed(path: Path, text: bytes | None = None) -> Iterator[None]:
    """Problems are reported with line and column."""
    try:
        yield
    except BadWorld as error:
        raise BadWorld(located(path, path.read_bytes() if text is None else text, str(error))) from None


def _unreadable(path: Path, error: Exception) -> BadWorld:
    if isinstance(error, BadWorld):
        return BadWorld(f"{path}:{error}")
    mark = getattr(error, "problem_mark", None)
    message = getattr(error, "problem", None) or (str(error).splitlines() or [type(error).__name__])[0]
    return BadWorld(f"{path}:{mark.line + 1}:{mark.column + 1}: {message}" if mark else f"{path}: {message}")


def _check(text: bytes) -> None:
    """Raises BadWorld if it is nested deeper than any parser bears; it holds no aliases, which could expand
    to more than there is room for.
    """
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            mark = event.start_mark
            deep = f"more than {DEEPEST} collections within each other"
            message = deep if depth > DEEPEST else "an alias, and a world has none"
            raise BadWorld(f"{mark.line + 1}:{mark.column + 1}: {message}" if mark else f" {message}")


def parse(data: object, passwords: Passwords, at: str = "world") -> World:
    """The world of YAML values."""
    world: World = read(World, data, at)
    if problems := list(_problems(world)):
        raise BadWorld("\n".join(f"{at}: {problem}" for problem in problems))

    def password(value: Any, name: str, field: str) -> str:
        try:
            return passwords.of(value, name, env)
        except BadWorld as error:
            raise BadWorld(f"{at}.{field}: {error}") from None

    env: dict[str, str] = {}
    env = {name: password(value, name, f"env.{name}") for name, value in world.env.items()}
    users = tuple(
        replace(user, password=password(user.password, user.name, f"users[{number}].password"))
        for number, user in enumerate(world.users)
    )
    registries = {
        host: replace(each, password=password(each.password, host, f"registries.{host}.password"))
        for host, each in world.registries.items()
    }
    others = {
        name: replace(
            each, token=password(each.token, f"administrator of {name}", f"kubernetes_clusters.{name}.token")
        )
        for name, each in world.kubernetes_clusters.items()
    }
    machines = {
        name: replace(
            each, password=each.password and password(each.password, name, f"linux_machines.{name}.password")
        )
        for name, each in world.linux_machines.items()
    }
    durations = {**DURATIONS, **world.durations}
    return replace(
        world,
        env=env,
        users=users,
        registries=registries,
        kubernetes_clusters=others,
        linux_machines=machines,
        durations=durations,
    )


def _problems(world: World) -> list[str]:
    hosts = world.hosts
    named = [  # what names what, and what is there
        *(("durations", name, DURATIONS) for name in world.durations),
        *(
            (f"users[{number}].groups", group, world.groups)
            for number, user in enumerate(world.users)
            for group in user.groups
        ),
        *(
            (f"datastores.{name}.hosts", host, hosts)
            for name, each in world.datastores.items()
            for host in each.hosts
        ),
        *(
            (f"datastores.{name}.clusters", cluster, world.clusters)
            for name, each in world.datastores.items()
            for cluster in each.clusters
        ),
        *(
            (f"storage_policies.{name}.datastores", store, world.datastores)
            for name, each in world.storage_policies.items()
            for store in each.datastores
        ),
        *(
            (f"kubernetes_clusters.{name}.kubeadm", each.kubeadm, world.linux_machines)
            for name, each in world.kubernetes_clusters.items()
            if each.kubeadm
        ),
        *(
            (f"kubernetes_clusters.{name}.machines", machine, world.linux_machines)
            for name, each in world.kubernetes_clusters.items()
            for machine in each.machines
        ),
        *(
            (f"content_libraries.{name}.datastore", each.datastore, world.datastores)
            for name, each in world.content_libraries.items()
        ),
        *(
            (f"clusters.{name}.content", library, world.content_libraries)
            for name, each in world.clusters.items()
            for library in each.content
        ),
        *(
            (f"beside[{number}].{sort}.{name}.{field}", named, there)
            for number, each in enumerate(world.beside)
            for sort, name, field, named, there in _named_beside(each)
        ),
    ]
    return [
        *(f"{what}: there is no {name}" for what, name, there in named if name not in there),
        *_clashes(world),
    ]


def _clashes(world: World) -> list[str]:
    """What is there twice, or has a value that can't be."""
    problems, hosts = list[str](), world.hosts
    beside = [host for each in world.beside for found in each.clusters.values() for host in found]
    problems += [
        f"beside: there are two hosts {each}" for each in {*beside} if [*hosts, *beside].count(each) > 1
    ]
    if sum(len(cluster.hosts) for cluster in world.clusters.values()) != len(hosts):
        problems.append("clusters: a host is in two clusters")
    taken = [*(each.address for each in world.kubernetes_clusters.values()), *_addresses(world)]
    problems += [
        f"kubernetes_clusters.{name}.address: {each.address} is taken"
        for name, each in world.kubernetes_clusters.items()
        if taken.count(each.address) > 1
    ]
    try:
        ipaddress.ip_network(world.guest_network or "0.0.0.0/0")
    except ValueError as error:
        problems.append(f"guest_network: {error}")
    if world.pace < 0:
        problems.append("pace: less than 0")
    return problems


def _named_beside(given: Beside) -> Iterator[tuple[str, str, str, str, Container[str]]]:
    """What its parts name: which part, its name and field, the name in it, and the names that there are."""
    hosts = {host for found in given.clusters.values() for host in found}
    for name, store in given.datastores.items():
        yield from (("datastores", name, "hosts", each, hosts) for each in store.hosts)
        yield from (("datastores", name, "clusters", each, given.clusters) for each in store.clusters)
    for name, template in given.templates.items():
        yield "templates", name, "cluster", template.cluster, given.clusters
        yield "templates", name, "datastore", template.datastore, given.datastores


def _addresses(world: World) -> list[str]:
    """Return the addresses on which vCenter, hosts, supervisors and their guests listen."""
    supervisors = [each.supervisor for each in world.clusters.values() if each.supervisor]
    kubernetes = [address for each in supervisors for address in (each.address, *each.guest_addresses())]
    return [
        f"{world.vcenter.host}:{world.vcenter.port}",
        *(f"{host}:443" for host in world.hosts),
        *(f"{address}:{port}" for address in kubernetes for port in (443, 6443)),
    ]
