"""Checks whether clusters and machines fit in their namespace's limits and on its vSphere cluster: the CPU
and memory that they reserve, and their volumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from bfinfra.backends.vcenter.namespaces import Namespaces, Supervisor
from bfinfra.kinds import class_gpus
from bfinfra.kinds.class_gpus import GpuFacts
from bfinfra.kinds.supervisor.base.pools import Pool, Sized
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Forbidden, Refusal
from bfinfra.model.names import storage_class
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.units import bytes_text, megahertz_text

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.capacity import Capacity

SPACES = "supervisor_namespace"
Others = Mapping[Key, Sized]


@dataclass(frozen=True)
class Space:
    """A supervisor namespace's vSphere cluster, and its limits after this run: MHz, bytes, None = no limit;
    `storage` by storage class.
    """

    cluster: str
    cpu: int | None = None
    memory: int | None = None
    total_storage: int | None = None
    storage: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """The surroundings that the check needs: namespaces by name, VM classes with the vGPUs of hosts,
    supervisors and capacity by vSphere cluster. Empty: not known.
    """

    spaces: Mapping[str, Space] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    """Namespaces that this run has still to create."""
    gpus: GpuFacts = field(default_factory=GpuFacts)
    supervisors: Mapping[str, Supervisor] = field(default_factory=dict)
    capacities: Mapping[str, Capacity] = field(default_factory=dict)

    def supervisor(self, namespace: str) -> Supervisor | None:
        """The running supervisor of a namespace."""
        found = self.supervisors.get(self.spaces[namespace].cluster) if namespace in self.spaces else None
        return found if found is not None and found.running and found.endpoint else None


def read(vcenter: VCenter, needs: Mapping[Key, ResolvedRef], vm_classes: Collection[str] = ()) -> Environment:
    """Reads it from vCenter and from the states of the namespaces. `vm_classes`: of which machines are to be
    made. Raises RemoteError.
    """
    spaces = {key.name: _space(need) for key, need in needs.items() if key.kind == SPACES}
    catalog = Namespaces(vcenter).catalog(each.cluster for each in spaces.values())
    try:
        by_id = vcenter.capacity.read()
    except Forbidden:
        by_id = {}
    return Environment(
        spaces,
        frozenset(key.name for key, need in needs.items() if key.kind == SPACES and need.state is None),
        class_gpus.read(vcenter.vgpus, catalog.vm_classes, vm_classes),
        catalog.supervisors,
        {name: by_id[each.cluster] for name, each in catalog.supervisors.items() if each.cluster in by_id},
    )


def home(namespace: str, wanted: Specs, environment: Environment) -> str:
    """The vSphere cluster of a namespace; "" if unknown."""
    own, there = wanted.get(Key(SPACES, namespace)), environment.spaces.get(namespace)
    return str(getattr(own, "cluster", "") or (there.cluster if there else ""))


def check(spec: Sized, context: PlanContext, environment: Environment) -> None:
    """Raises Refusal for a cluster or a machine that can never run: vSphere would create it and then wait
    without end. The site's other clusters and machines there count, of every kind.
    """
    space = environment.spaces.get(spec.namespace)
    if space is None:
        return
    others: Others = {
        key: other
        for key, other in context.wanted.items()
        if hasattr(other, "pools") and str(key) != context.mark.address
    }
    here = {key: other for key, other in others.items() if other.namespace == spec.namespace}
    there = {
        key: other
        for key, other in others.items()
        if home(other.namespace, context.wanted, environment) == space.cluster
    }
    room = environment.capacities.get(space.cluster)
    limit = _Limit(
        f"the namespace {spec.namespace} may use",
        f"raise limits.{{}} of supervisor_namespace/{spec.namespace}",
    )
    _reserved(spec, here, environment, "memory", limit._replace(most=space.memory))
    _reserved(spec, here, environment, "cpu", limit._replace(most=space.cpu))
    if room is not None:
        _on_one_host(spec, environment, space.cluster, room)
        hosts = _Limit(f"the hosts of {space.cluster} have", f"add hosts to {space.cluster}")
        _reserved(spec, there, environment, "memory", hosts._replace(most=room.memory))
        _reserved(spec, there, environment, "cpu", hosts._replace(most=room.cpu))
    _volumes(spec, here, space)


class _Limit(NamedTuple):
    """`who` sets it, what helps, and bytes or MHz; None: no limit."""

    who: str
    remedy: str
    most: int | None = None


def _reserved(spec: Sized, others: Others, environment: Environment, what: str, limit: _Limit) -> None:
    each = {"memory": _memory, "cpu": _cpu}[what](environment, spec.namespace)
    mine, besides = _sum(spec, each), {key: _sum(other, each) for key, other in others.items()}
    if limit.most is None or not mine or mine + sum(besides.values()) <= limit.most:
        return
    text = {"memory": bytes_text, "cpu": megahertz_text}[what]
    reserving = [pool for pool in spec.pools() if each(pool)]
    counted = Counter({pool.vm_class: 0 for pool in reserving})
    for pool in reserving:
        counted[pool.vm_class] += pool.count
    why = [
        f"{count} × {name} with {text(each(next(n for n in reserving if n.vm_class == name)))} each"
        for name, count in counted.items()
    ]
    why += [f"{key} reserves {text(size)}" for key, size in besides.items() if size]
    label = {"memory": "memory", "cpu": "CPU"}[what]
    who, fewer = (
        ("it reserves", "choose") if _is_machine(spec) else ("its nodes reserve", "write fewer nodes,")
    )
    raise Refusal(
        f"{who} {text(mine)} of {label}; {limit.who} {text(limit.most)}",
        field=_at(max(reserving, key=lambda pool: pool.count * each(pool)), "vm_class"),
        why="; ".join(why),
        next=f"{fewer} a smaller or a best-effort class, or {limit.remedy.format(what)}",
    )


def _on_one_host(spec: Sized, environment: Environment, cluster: str, room: Capacity) -> None:
    """Raises Refusal for a class that no host can run: a machine is on one."""
    memory = _memory(environment, "")
    for pool in spec.pools():
        found = environment.gpus.classes.get(pool.vm_class)
        if found is None or not pool.count:
            continue
        if 0 < room.threads < found.cpus:
            asks, most = f"takes {found.cpus} CPUs", f"{room.threads} logical ones"
        elif 0 < room.host_memory < memory(pool):
            asks, most = f"reserves {bytes_text(memory(pool))} of memory", bytes_text(room.host_memory)
        else:
            continue
        raise Refusal(
            f"a machine of the class {pool.vm_class} {asks}; no host of {cluster} has more than {most}",
            field=_at(pool, "vm_class"),
            next=f"choose a smaller class, or add a larger host to {cluster}",
        )


def _is_machine(spec: Sized) -> bool:
    """Return whether it is a machine, and no cluster."""
    return not spec.pools()[0].role


def _at(pool: Pool, field: str) -> str:
    return f"{pool.role}.{field}" if pool.role else field


def _memory(environment: Environment, _: str) -> Callable[[Pool], int]:
    def of(nodes: Pool) -> int:
        found = environment.gpus.classes.get(nodes.vm_class)
        return found.memory * found.memory_reservation // 100 if found else 0

    return of


def _cpu(environment: Environment, namespace: str) -> Callable[[Pool], int]:
    """The MHz that nodes reserve. A core counts with the MHz of the slowest host, as in vSphere."""
    room = environment.capacities.get(environment.spaces[namespace].cluster)

    def of(nodes: Pool) -> int:
        found = environment.gpus.classes.get(nodes.vm_class)
        return found.cpus * room.core * found.cpu_reservation // 100 if found and room else 0

    return of


def _volumes(spec: Sized, others: Others, space: Space) -> None:
    """Raises Refusal if all volumes exceed the limit of their policy or of the namespace."""
    mine, rest = _claims(spec), Counter[str]()
    for other in others.values():
        rest.update(_claims(other))
    limits = [(name, size, rest[name], space.storage.get(name)) for name, size in mine.items()]
    limits.append(("", sum(mine.values()), sum(rest.values()), space.total_storage))
    what, fewer = (
        ("disks", "smaller disks")
        if _is_machine(spec)
        else ("volumes of its nodes", "fewer nodes or smaller volumes")
    )
    for policy, size, besides, limit in limits:
        if limit is None or not size or size + besides <= limit:
            continue
        role = next(pool for pool in spec.pools() if pool.volumes and policy in ("", pool.storage_class))
        of = f" of {policy}" if policy else ""
        counted = "" if _is_machine(spec) else _counted(spec, policy)
        others_text = f"the site's other clusters and machines there take {bytes_text(besides)}"
        raise Refusal(
            (
                f"{'its' if _is_machine(spec) else 'the'} {what} take {bytes_text(size)}{of}; the namespace "
                f"{spec.namespace} may use {bytes_text(limit)}"
            ),
            field=role.role if _is_machine(spec) else f"{role.role}.volumes",
            why="; ".join(filter(None, (counted, others_text if besides else ""))),
            next=(
                f"write {fewer}, or raise "
                f"{f'storage.{policy}' if policy else 'limits.storage'} of "
                f"supervisor_namespace/{spec.namespace}"
            ),
        )


def _counted(spec: Sized, policy: str) -> str:
    return "; ".join(
        f"{pool.count} nodes × {bytes_text(pool.volumes)}"
        for pool in spec.pools()
        if pool.volumes and pool.count and policy in ("", pool.storage_class)
    )


def _claims(spec: Sized) -> Counter[str]:
    found = Counter[str]()
    for pool in spec.pools():
        found[pool.storage_class] += pool.count * pool.volumes
    return found


def _sum(spec: Sized, each: Callable[[Pool], int]) -> int:
    return sum(pool.count * each(pool) for pool in spec.pools())


def _space(need: ResolvedRef) -> Space:
    if need.spec is not None:
        return Space(
            need.spec.cluster,
            need.spec.limits.cpu,
            need.spec.limits.memory,
            need.spec.limits.storage,
            _classes(need.spec.storage),
        )
    given = need.state.settings
    return Space(need.state.cluster, given.cpu, given.memory, given.total_storage, _classes(given.storage))


def _classes(storage: Mapping[str, int | None]) -> dict[str, int | None]:
    return {storage_class(policy): limit for policy, limit in storage.items()}
