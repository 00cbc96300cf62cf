"""A resource pool of a cluster, which limits and guarantees CPU and memory of the VMs in it. (Consolidated
GPU cluster: virtual machines and Tanzu share hosts.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from bfinfra.backends.vcenter.places import Allocation, Inventory, ResourcePool, only
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.kinds.vcenter.base.marked_by_name import NAME, NAME_RULE, MarkedByName, pending_name
from bfinfra.kinds.vcenter.base.pools import pool_named
from bfinfra.model import compare, kind, resource
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import FieldError, Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import READ, VCENTER, Entity, PrivilegePlaces, Use, holds, path_in
from bfinfra.model.site import Site
from bfinfra.model.step import Step, Versioned
from bfinfra.model.units import MIB, Bytes, Megahertz

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.pools import ResourcePools

MARKED = MarkedByName(
    kind="resource_pool",
    place="pool",
    create="Resource.CreatePool",
    rename="Resource.RenamePool",
    delete="Resource.DeletePool",
)
"""A pool has no place for a mark but a custom attribute."""


def _whole_mib(number: int) -> int:
    if number % MIB:
        raise ValueError("vCenter counts the memory of a resource pool in whole MiB")
    return number


Shares = Literal["low", "normal", "high"] | Annotated[int, Field(ge=1, le=4_000_000)]
Memory = Annotated[Bytes, AfterValidator(_whole_mib)]


class _Allotment(resource.Part):
    """The fields that CPU and memory share."""

    shares: Shares = "normal"
    """Priority over its siblings when all together need more than there is: low, normal, high, or
    a number.
    """
    expandable: bool = True
    """Whether it may take more than its reservation from its parent."""


class Cpu(_Allotment):
    """The share of the cluster's CPUs that the VMs in it may use."""

    reservation: Megahertz = 0
    """Guaranteed CPU, such as 16GHz."""
    limit: Megahertz | None = None
    """The most CPU that it may use; null: no limit, as a new pool has it."""

    @property
    def allocation(self) -> Allocation:
        """The allocation as vCenter counts it, in MHz."""
        return Allocation(self.reservation, self.limit, self.shares, self.expandable)


class MemoryPart(_Allotment):
    """The share of the cluster's memory that the VMs in it may use."""

    reservation: Memory = 0
    """Guaranteed memory, such as 256GiB."""
    limit: Memory | None = None
    """The most memory that it may use; null: no limit, as a new pool has it."""

    @property
    def allocation(self) -> Allocation:
        """The allocation as vCenter counts it, in MiB."""
        limit = None if self.limit is None else self.limit // MIB
        return Allocation(self.reservation // MIB, limit, self.shares, self.expandable)


class Spec(resource.Spec):
    """The desired state of one resource pool; its name is the pool's name in vCenter."""

    name_pattern = NAME
    name_rule = NAME_RULE

    cluster: str
    """The vSphere cluster that it divides."""
    parent: Annotated[str, Ref("resource_pool", optional=True)] | None = None
    """The pool that it is in, of this site or existing; left out, the cluster's root pool."""
    cpu: Cpu = Field(default_factory=Cpu)
    """What the VMs in it may use of the cluster's CPUs."""
    memory: MemoryPart = Field(default_factory=MemoryPart)
    """What the VMs in it may use of the cluster's memory."""

    @model_validator(mode="after")
    def _room(self) -> Spec:
        for name, part in (("cpu", self.cpu), ("memory", self.memory)):
            if part.limit is not None and part.limit < part.reservation:
                raise FieldError(
                    f"it is less than {name}.reservation, which vCenter refuses",
                    f"{name}.limit",
                    f"raise {name}.limit, or lower {name}.reservation",
                )
        return self


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The pool as vCenter reports it. `unnamed`: whether it still has its pending name."""

    pool: ResourcePool
    cluster: str
    parent: Annotated[str, Ref("resource_pool", optional=True)] | None = None
    unnamed: bool = False


@dataclass(frozen=True)
class ResourcePoolFacts:
    """Clusters and pools that decisions need."""

    inventory: Inventory
    pools: tuple[ResourcePool, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create the resource pool {name} on {cluster}"""

    rights = MARKED.to_make("Resource.EditPool")
    name: str
    cluster: str
    into: str | Unknown
    cpu: Allocation
    memory: Allocation
    mark: Mark

    @property
    def exclusive(self) -> bool:
        """The call fails if the parent has a pool of that name."""
        return True


@dataclass(frozen=True, kw_only=True)
class Configure(Versioned):
    """change the resource pool {name}"""

    rights = MARKED.to_finish("Resource.EditPool")
    name: str
    moid: str
    called: str = field(repr=False, compare=False)
    """The name that it has now: its own, or its pending name."""
    cpu: Allocation
    memory: Allocation
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Move(Step):
    """move the resource pool {name} into {parent}"""

    rights = (holds("pool", "Resource.MovePool"),)
    name: str
    moid: str
    parent: str
    into: str | Unknown


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete the resource pool {name}"""

    destructive = True
    rights = MARKED.to_remove()
    uses = (Use.DESTROY,)
    name: str
    moid: str
    pending: str
    """The pending name to give it before the deletion; "" if it has it already."""


class ResourcePoolKind(kind.Kind[Spec, State]):
    """A resource pool of a cluster, which limits and guarantees CPU and memory of the VMs in it."""

    document = Document.CONSOLIDATED
    followed = True
    step_types = (Create, Configure, Move, Delete)
    alone = True
    survey_privileges = (holds(VCENTER, *READ),)

    def __init__(self, vcenter: VCenter, pools: ResourcePools, site: Site) -> None:
        self._vcenter, self._pools = vcenter, pools
        self._site = site.name

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads all pools. Finds this site's by their notes or pending names, and those to adopt by the names
        in the site. Reads the clusters only if there is such a pool.
        """
        pools = self._pools.read(MARKED.attribute)
        mine = {
            name: pool
            for name, pool in MARKED.of_site(pools, self._site).items()
            if include_unlisted or name in wanted
        }
        inventory = self._vcenter.inventory.pools() if mine or any(wanted.values()) else Inventory()
        facts = ResourcePoolFacts(inventory, pools)
        found = {name: self._state(pool, facts, wanted.get(name)) for name, pool in mine.items()}
        for name, spec in wanted.items():
            if spec and name not in found and (there := _existing(name, spec, facts)) is not None:
                found[name] = self._state(there, facts, spec)
        return Observation(found, facts)

    def _state(self, pool: ResourcePool, facts: ResourcePoolFacts, spec: Spec | None) -> State:
        has = MARKED.identity(pool, self._site)
        inside = [each for each in facts.pools if each.moid == pool.parent]
        return State(
            mark=has.mark,
            pool=pool,
            cluster=next((c.name for c in facts.inventory.clusters if c.moid == pool.owner), ""),
            parent=MARKED.identity(inside[0], self._site).name if inside else None,
            unnamed=has.unnamed,
            contents=() if spec else self._contents(pool, facts),
        )

    def _contents(self, pool: ResourcePool, facts: ResourcePoolFacts) -> tuple[str, ...]:
        """VMs and pools in it that this site didn't make."""
        machines = self._vcenter.machines.read(pool.vms, [MARK]) if pool.vms else []
        inner = [each for each in facts.pools if each.parent == pool.moid]
        return (
            *(
                f"VM {each.name} is in it"
                for each in machines
                if Mark.site_in(each.extra.get(MARK), each.instance_uuid) != self._site
            ),
            *(
                f"resource pool {each.name} is in it"
                for each in inner
                if (mark := MARKED.identity(each, self._site).mark) is None or mark.site != self._site
            ),
        )

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every pool of a cluster of the site's datacenter except its root pool."""
        facts = ResourcePoolFacts(self._vcenter.inventory.pools(), self._pools.read(MARKED.attribute))
        names = facts.inventory.called
        for pool in (each for each in facts.pools if each.owner in names):
            name = MARKED.identity(pool, self._site).name
            state = self._state(pool, facts, None)
            place: dict[str, object] = {"cluster": names[pool.owner]}
            inside = names.get(pool.parent, "")
            place |= {"parent": inside if "/" in inside else state.parent} if state.parent else {}
            yield Description(
                name, {**place, "cpu": _plain(pool.cpu), "memory": _plain(pool.memory, MIB)}, state
            )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, moves, changes or deletes it, in one step each."""
        if spec is None:
            return () if state is None else (_delete(name, state, context.mark.site),)
        into, mark = _parent(spec, context), context.mark.committed(spec.applied())
        cpu, memory = spec.cpu.allocation, spec.memory.allocation
        if state is None:
            changes = differences(None, spec.applied())
            made = Create(
                name=name, cluster=spec.cluster, into=into, cpu=cpu, memory=memory, mark=mark, changes=changes
            )
            return (made,)
        home = only(context.facts.inventory.cluster(spec.cluster))
        if home is not None and home.moid != state.pool.owner:
            raise Refusal(
                f"the resource pool is on the cluster {state.cluster}",
                field="cluster",
                why="a pool can't move to another cluster",
                next="give the new one another name, or delete this one first",
            )
        moved = state.parent != spec.parent and state.pool.parent != into
        change = Change("parent", state.parent, spec.parent)
        found = list(compare.changes(spec, state.mark, _drift(spec, state)))
        steps: list[Step] = []
        if moved:
            parent = spec.parent or spec.cluster
            steps.append(Move(name=name, moid=state.pool.moid, parent=parent, into=into, changes=(change,)))
            found = [each for each in found if each.field != "parent"]
        if state.unnamed and not found:
            found = [Change("name", state.pool.name, name)]
        if found or moved:
            pool = state.pool
            at = {"name": name, "moid": pool.moid, "called": pool.name, "version": pool.version}
            steps.append(Configure(**at, cpu=cpu, memory=memory, mark=mark, changes=tuple(found)))
        return steps

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The cluster's pools, and the root, where custom attributes are defined."""
        pools = Entity(
            f"{path_in(datacenter, 'host', spec.cluster)}/Resources", "ResourcePool", propagate=True
        )
        return MARKED.places(pools)

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. A pool keeps its pending name until it has its note."""
        pools = self._pools
        match step:
            case Create(into=str() as into, cpu=cpu, memory=memory):
                MARKED.make(pools, step.mark, lambda called: pools.create(into, called, cpu, memory))
            case Configure(moid=moid, called=called):
                pools.update(moid, called, (step.cpu, step.memory), step.writes, version=step.version)
                MARKED.finish(pools, moid, called, step.mark)
            case Move(into=str() as into):
                pools.move(step.moid, into)
            case Delete():
                MARKED.remove(pools, step.moid, step.pending)
            case _:
                raise AssertionError(step)


def _delete(name: str, state: State, site: str) -> Delete:
    return Delete(name=name, moid=state.pool.moid, pending="" if state.unnamed else pending_name(name, site))


def _existing(name: str, spec: Spec, facts: ResourcePoolFacts) -> ResourcePool | None:
    """An existing pool of that name and parent, which can be adopted."""
    cluster = only(facts.inventory.cluster(spec.cluster))
    if cluster is None:
        return None
    parent = cluster.pool
    if spec.parent is not None:
        outer = only(facts.inventory.pool(spec.parent, cluster.moid))
        parent = outer.moid if outer else ""
    return next((each for each in facts.pools if each.name == name and each.parent == parent), None)


def _parent(spec: Spec, context: PlanContext) -> str | Unknown:
    """The id of its parent pool, or Unknown if this site has still to make that. Raises Refusal if there is
    no such cluster or pool.
    """
    facts: ResourcePoolFacts = context.facts
    cluster = the(facts.inventory.cluster(spec.cluster), "cluster", spec.cluster, "cluster")
    if spec.parent is None:
        return cluster.pool
    return pool_named(spec.parent, "parent", cluster, facts.inventory, context)


def _drift(spec: Spec, state: State) -> tuple[Change, ...]:
    return compare.drift(
        spec,
        state.mark,
        {"cpu": _plain(state.pool.cpu), "memory": _plain(state.pool.memory, MIB)},
        {"cpu": _plain(spec.cpu.allocation), "memory": _plain(spec.memory.allocation, MIB)},
    )


def _plain(found: Allocation, unit: int = 1) -> dict[str, Any]:
    """An allocation in the names and units of the spec's fields."""
    return {
        "reservation": found.reservation * unit,
        "limit": None if found.limit is None else found.limit * unit,
        "shares": found.shares,
        "expandable": found.expandable,
    }
