"""A port group of a distributed switch, with its VLAN. (RDG for PVRDMA, tables of host and VM networks.)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from bfinfra.backends.vcenter.networks import GroupPlan, Networks, PortGroup, Switch
from bfinfra.backends.vcenter.places import called, only
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.model import compare, kind, resource
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, above, below
from bfinfra.model.names import VCENTER_NAME, VCENTER_NAME_RULE
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import READ, VCENTER, Entity, PrivilegePlaces, Use, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Step, Versioned

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter


class Spec(resource.Spec):
    """The desired state of one port group; its name is the port group's name in vCenter."""

    name_pattern = VCENTER_NAME
    name_rule = VCENTER_NAME_RULE

    switch: Annotated[str, Ref("distributed_switch", optional=True)]
    """Distributed switch, of this site or existing."""
    vlan: Annotated[int, Field(ge=0, le=4094)] = 0
    """VLAN; 0 = untagged."""
    ports: Annotated[int, Field(ge=1, le=8192)] = 8
    """Number of ports at creation; vCenter adds more when they are used up."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The port group as vCenter reports it. `switch`: the name of its switch, `on`: that switch; `moid`,
    `key` and `uuid` (of the switch): what adapters connect to.
    """

    switch: Annotated[str, Ref("distributed_switch", optional=True)]
    group: PortGroup
    on: Switch

    @property
    def key(self) -> str:
        """The port group's key, which network adapters refer to."""
        return self.group.key

    @property
    def uuid(self) -> str:
        """The switch's."""
        return self.on.uuid


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create the port group {name} on {switch}"""

    rights = (holds("networks", "DVPortgroup.Create"),)

    name: str
    switch: str
    moid: str | Unknown
    plan: GroupPlan

    @property
    def exclusive(self) -> bool:
        """The call fails if the name is taken."""
        return True


@dataclass(frozen=True, kw_only=True)
class Reconfigure(Versioned):
    """change the port group {name}"""

    rights = (holds("networks", "DVPortgroup.Modify"),)

    name: str
    moid: str
    plan: GroupPlan


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete the port group {name}"""

    destructive = True
    rights = (holds("networks", "DVPortgroup.Delete"),)
    uses = (Use.DESTROY,)
    name: str
    moid: str


class PortGroupKind(kind.Kind[Spec, State]):
    """A port group of a distributed switch."""

    document = Document.PVRDMA
    followed = True
    step_types = (Create, Reconfigure, Delete)
    alone = True
    survey_privileges = (holds(VCENTER, *READ),)

    def __init__(self, vcenter: VCenter, site: Site) -> None:
        self._vcenter = vcenter
        self._site = site.name

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads all switches with their port groups."""
        found = self._vcenter.switches.read(context=False)
        switches = {switch.moid: switch for switch in found.switches}
        states: dict[str, State] = {}
        for group in sorted(found.groups, key=lambda each: _rank(each, switches, found)):
            mark = Mark.decode(group.description)
            own = mark is not None and mark.name_of(self._site, "port_group") == group.name
            spec = wanted.get(group.name)
            if (
                (own and (include_unlisted or group.name in wanted))
                or (spec is not None and _is_on(group, spec, found))
            ) and group.switch in switches:
                on = switches[group.switch]
                contents = () if wanted.get(group.name) else self._strange(group)
                states[group.name] = State(mark=mark, switch=on.name, group=group, on=on, contents=contents)
        return Observation(states, found)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every port group of the site's datacenter except those of uplinks."""
        found = self._vcenter.switches.read(context=False)
        switches = {switch.moid: switch for switch in found.switches if found.is_here(switch)}
        names = called(found.things)
        for group in found.groups:
            if group.uplink or group.switch not in switches:
                continue
            on = switches[group.switch]
            yield Description(
                group.name,
                {"switch": names[group.switch], "vlan": group.vlan, "ports": group.ports},
                State(mark=Mark.decode(group.description), switch=on.name, group=group, on=on),
                left_out="" if group.vlan is not None else "its VLAN is a trunk or private",
            )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, changes or deletes it, in one step each."""
        if spec is None:
            return () if state is None else (Delete(name=name, moid=state.group.moid),)
        mark = context.mark.committed(spec.applied())
        if state is None:
            _refuse_namesake(name, spec, context)
            plan = GroupPlan(name, below("", mark), spec.vlan, spec.ports)
            return (
                Create(
                    name=name,
                    switch=spec.switch,
                    moid=_switch(spec, context),
                    plan=plan,
                    changes=differences(None, spec.applied()),
                ),
            )
        if state.switch != spec.switch and not _is_on(state.group, spec, context.facts):
            raise Refusal(
                f"the port group is on the switch {state.switch}",
                field="switch",
                why="a port group can't move to another switch",
                next="give the new one another name",
            )
        found = compare.changes(spec, state.mark, _drift(spec, state))
        plan = GroupPlan(
            name,
            below(above(state.group.description), mark),
            spec.vlan if compare.touches(found, "vlan") else None,
            _ports(spec, state) if compare.touches(found, "ports") else state.group.ports,
        )
        group = state.group
        change = Reconfigure(name=name, moid=group.moid, version=group.version, plan=plan, changes=found)
        return (change,) if found else ()

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The network folder with all below it."""
        return {"networks": (Entity(f"/{datacenter}/network", "Folder", propagate=True),)}

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, as one task."""
        match step:
            case Create(moid=str() as moid, plan=plan):
                self._vcenter.switches.create_group(moid, plan)
            case Reconfigure(moid=moid, plan=plan):
                self._vcenter.switches.reconfigure_group(moid, plan, step.version)
            case Delete(moid=moid):
                self._vcenter.switches.remove(moid, group=True)
            case _:
                raise AssertionError(step)

    def _strange(self, group: PortGroup) -> tuple[str, ...]:
        """VMs on the port group that this site didn't make."""
        machines = self._vcenter.machines.read(group.vms, [MARK]) if group.vms else []
        return tuple(
            f"VM {each.name} is on it"
            for each in machines
            if Mark.site_in(each.extra.get(MARK), each.instance_uuid) != self._site
        )


def _switch(spec: Spec, context: PlanContext) -> str | Unknown:
    """The id of its switch, or Unknown if this site has still to make it."""
    need = context.needs.get("switch")
    facts: Networks = context.facts
    if need is not None and (need.spec is not None or need.state is not None):
        known = need.get("switch")
        return known if isinstance(known, Unknown) else str(known.moid)
    return the(facts.switch(spec.switch), "distributed switch", spec.switch, "switch").moid


def _refuse_namesake(name: str, spec: Spec, context: PlanContext) -> None:
    """Raises Refusal if another switch of its folder has a port group of that name: a folder has one."""
    facts: Networks = context.facts
    homes = {switch.moid: switch.where.rpartition("/")[0] for switch in facts.switches}
    at = only(facts.switch(spec.switch))
    other = next(
        (
            switch
            for group in facts.groups
            for switch in facts.switches
            if at and group.name == name and switch.moid == group.switch != at.moid
            if homes[switch.moid] == homes[at.moid]
        ),
        None,
    )
    if other is not None:
        raise Refusal(
            f"the switch {other.name} has a port group {name}",
            why=f"a folder has one of a name, and both switches are in {homes[other.moid]}",
            next="give it another name",
        )


def _is_on(group: PortGroup, spec: Spec, found: Networks) -> bool:
    """Whether a port group is on the switch that the site means."""
    switch = only(found.switch(spec.switch))
    return switch is not None and switch.moid == group.switch


def _rank(group: PortGroup, switches: Mapping[str, Switch], found: Networks) -> tuple[bool, bool]:
    """Of two port groups of one name the later one counts: a marked one, first in the site's datacenter."""
    on = switches.get(group.switch)
    return Mark.owner_in(group.description) is not None, on is not None and found.is_here(on)


def _ports(spec: Spec, state: State) -> int:
    """The number of ports to set. It shrinks only if the ports are those that the site had before: ports that
    vCenter added are in use.
    """
    applied = state.mark.applied if state.mark else None
    before = None if applied is None else applied.get("ports", Spec.model_fields["ports"].default)
    return spec.ports if state.group.ports == before else max(spec.ports, state.group.ports)


def _drift(spec: Spec, state: State) -> tuple[Change, ...]:
    """The differences. More ports than the site has are no difference, as vCenter adds them."""
    group = state.group
    now: dict[str, Any] = {
        "vlan": "trunk or private" if group.vlan is None else group.vlan,
        "ports": min(group.ports, spec.ports),
    }
    return compare.drift(spec, state.mark, now, {"vlan": spec.vlan, "ports": spec.ports})
