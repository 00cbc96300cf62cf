"""A distributed switch with one RDMA adapter of each host as its uplink. (RDG for PVRDMA, "vSphere Network
Architecture".)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.networks import Networks, Switch, SwitchPlan
from bfinfra.kinds.vcenter.distributed_switch.checks import CHECKS
from bfinfra.kinds.vcenter.distributed_switch.spec import Spec
from bfinfra.model import compare, kind, resource
from bfinfra.model.compare import Change, differences
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, above, below
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, VCENTER, Entity, PrivilegePlaces, Use, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Step, Versioned
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

MEMBERS = (holds("members", "DVSwitch.HostOp"), holds("hosts", "Host.Config.Network"))
"""The privileges to add hosts, remove hosts or change their NICs."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The switch as vCenter reports it. `hosts`: NICs by the name of each host that this account can see;
    `unseen`: ids of the others; `lost`: host's name → why it is as vCenter last saw it.
    """

    switch: Switch
    hosts: Mapping[str, tuple[str, ...]]
    unseen: frozenset[str] = frozenset()
    lost: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create the distributed switch {name}"""

    rights = (holds("networks", "DVSwitch.Create"), *MEMBERS)

    name: str
    folder: str
    plan: SwitchPlan

    @property
    def exclusive(self) -> bool:
        """The call fails if the name is taken."""
        return True


@dataclass(frozen=True, kw_only=True)
class Reconfigure(Versioned):
    """change the distributed switch {name}"""

    rights = (holds("networks", "DVSwitch.Modify"), *MEMBERS)

    name: str
    moid: str
    plan: SwitchPlan


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete the distributed switch {name}"""

    destructive = True
    rights = (holds("networks", "DVSwitch.Delete"),)
    uses = (Use.DESTROY,)
    name: str
    moid: str


class DistributedSwitch(kind.Kind[Spec, State]):
    """A distributed switch."""

    document = Document.PVRDMA
    followed = True
    checks = CHECKS
    step_types = (Create, Reconfigure, Delete)
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
        """Reads all switches with their port groups; hosts and folders, too, if the site wants a switch."""
        found = self._vcenter.switches.read(context=any(wanted.values()))
        states = {}
        # of two switches of one name the later one counts: a marked one, first in the site's datacenter
        for switch in sorted(
            found.switches, key=lambda each: (bool(Mark.owner_in(each.description)), found.is_here(each))
        ):
            mark = Mark.decode(switch.description)
            own = mark is not None and mark.name_of(self._site, "distributed_switch") == switch.name
            meant = wanted.get(switch.name) is not None and found.is_here(switch)
            if (own and (include_unlisted or switch.name in wanted)) or meant:
                states[switch.name] = _state(switch, found, self._strange(switch, found))
        return Observation(states, replace(found, switches=(), groups=()))

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every distributed switch of the site's datacenter."""
        found = self._vcenter.switches.read(context=True)
        for switch in filter(found.is_here, found.switches):
            state = _state(switch, found)
            yield Description(switch.name, _view(state), state)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, changes or deletes it, in one step each."""
        if spec is None:
            return () if state is None else (Delete(name=name, moid=state.switch.moid),)
        facts: Networks = context.facts
        mark = context.mark.committed(spec.applied())
        if state is None:
            plan, changes = _plan(name, spec, None, facts, mark), differences(None, spec.applied())
            _refuse_lost(plan, facts)
            return (Create(name=name, folder=_folder(facts), plan=plan, changes=changes),)
        if spec.version and spec.version != state.switch.version:
            raise Refusal(
                f"the switch is of version {state.switch.version}",
                field="version",
                why="an upgrade can't be undone, and bfinfra can't plan for what it interrupts",
                next="upgrade it in vCenter, or leave version out",
            )
        found = compare.changes(spec, state.mark, _drift(spec, state))
        plan = _only(_plan(name, spec, state, facts, mark), found)
        moid, version = state.switch.moid, state.switch.version_of_config
        _refuse_lost(plan, facts)
        change = Reconfigure(name=name, moid=moid, version=version, plan=plan, changes=found)
        return (change,) if found else ()

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: Networks | None) -> Iterator[Conflict]:
        """Warnings about hosts that can't be seen."""
        for key in wanted:
            if isinstance(state := states.get(key), State):
                yield from _members(key, state)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The network folder with all below it, and the hosts."""
        hosts = tuple(Entity(f"/{datacenter}/host/*/{host}", "HostSystem") for host in spec.hosts)
        networks = (Entity(f"/{datacenter}/network", "Folder", propagate=True),)
        return {"networks": networks, "members": networks if hosts else (), "hosts": hosts}

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, as one task."""
        match step:
            case Create(folder=folder, plan=plan):
                self._vcenter.switches.create(folder, plan)
            case Reconfigure(moid=moid, plan=plan):
                self._vcenter.switches.reconfigure(moid, plan, step.version)
            case Delete(moid=moid):
                self._vcenter.switches.remove(moid)
            case _:
                raise AssertionError(step)

    def _strange(self, switch: Switch, found: Networks) -> tuple[str, ...]:
        """Port groups on the switch that this site didn't make."""
        groups = [group for group in found.groups if group.switch == switch.moid and not group.uplink]
        return tuple(
            f"port group {group.name}" for group in groups if Mark.site_in(group.description) != self._site
        )


def _state(switch: Switch, found: Networks, contents: tuple[str, ...] = ()) -> State:
    """The state of a switch, with the hosts that were read."""
    names = {moid: name for name, moid in found.hosts.items() if moid in switch.hosts}
    return State(
        mark=Mark.decode(switch.description),
        switch=switch,
        hosts={name: switch.hosts[moid] for moid, name in names.items()},
        unseen=frozenset(switch.hosts.keys() - names.keys()) if found.hosts else frozenset(),
        lost={name: found.lost[moid] for moid, name in names.items() if moid in found.lost},
        contents=contents,
    )


def _members(key: Key, state: State) -> Iterator[Conflict]:
    """Warnings about hosts of a switch that can't be seen. They stay on it, whatever the file says."""
    for host, why in sorted(state.lost.items()):
        yield Conflict(
            Spot(key, f"hosts.{host}"),
            f"its NICs of {host} are as vCenter last saw them",
            why=why,
            next=resource.RECONNECT,
            stops=False,
        )
    if state.unseen:
        yield Conflict(
            Spot(key, "hosts"),
            f"{len(state.unseen)} of its hosts can't be seen, and stay on it",
            why=f"{', '.join(sorted(state.unseen))}: the account may not read them",
            next="let it read them, to compare and change them",
            stops=False,
        )
    if state.switch.gone:
        yield Conflict(
            Spot(key, "hosts"),
            f"{state.switch.gone} of its members are hosts that vCenter no longer has",
            why="a host was removed from vCenter without leaving the switch first",
            next="add the host again, or remove the stale member in vCenter (Networking, Hosts)",
            stops=False,
        )


def _folder(facts: Networks) -> str:
    if len(facts.folders) != 1:
        raise Refusal(
            f"there are {len(facts.folders)} datacenters",
            why=", ".join(sorted(facts.folders)),
            next="write vcenter.datacenter to choose one",
        )
    return next(iter(facts.folders.values()))


def _plan(name: str, spec: Spec, state: State | None, facts: Networks, mark: Mark) -> SwitchPlan:
    for host in spec.hosts:
        if host not in facts.hosts:
            raise Refusal(
                f"there is no host {host}",
                field=f"hosts.{host}",
                why="vCenter doesn't know it",
                next=nearest(host, facts.hosts),
            )
    now = state.switch.hosts if state else {}
    wanted = {facts.hosts[host]: nics for host, nics in spec.hosts.items()}
    return SwitchPlan(
        name=name,
        description=below(above(state.switch.description) if state else "", mark),
        mtu=spec.mtu,
        uplinks=_uplinks(spec, state.switch.uplinks if state else ()),
        version=spec.version or "",
        hosts={host: nics for host, nics in wanted.items() if now.get(host) != nics},
        joining=frozenset(wanted.keys() - now.keys()),
        leaving=frozenset(now.keys() - wanted.keys() - (state.unseen if state else frozenset())),
    )


def _refuse_lost(plan: SwitchPlan, facts: Networks) -> None:
    """Raises Refusal if a host that vCenter doesn't see would have to change."""
    names = {moid: name for name, moid in facts.hosts.items()}
    for moid in sorted({*plan.hosts, *plan.leaving} & facts.lost.keys()):
        raise Refusal(
            f"the NICs of {names[moid]} can't be changed",
            field=f"hosts.{names[moid]}",
            why=facts.lost[moid],
            next=resource.RECONNECT,
        )


def _only(plan: SwitchPlan, changes: Sequence[Change]) -> SwitchPlan:
    """The plan with those fields only that the changes are in."""
    members = compare.touches(changes, "hosts")
    return replace(
        plan,
        mtu=plan.mtu if compare.touches(changes, "mtu") else None,
        uplinks=plan.uplinks if compare.touches(changes, "uplinks") else None,
        hosts=plan.hosts if members else {},
        leaving=plan.leaving if members else frozenset(),
    )


def _uplinks(spec: Spec, now: Sequence[str]) -> tuple[str, ...]:
    """The uplinks' names: those that are there, then new ones."""
    new = (f"Uplink {number}" for number in itertools.count(1))
    free = (name for name in new if name not in now)
    return tuple(itertools.islice(itertools.chain(now, free), spec.uplinks))


def _drift(spec: Spec, state: State) -> tuple[Change, ...]:
    wanted = {"mtu": spec.mtu, "uplinks": spec.uplinks, "hosts": spec.hosts}
    return compare.drift(spec, state.mark, _view(state), wanted)


def _view(state: State) -> dict[str, object]:
    """The switch as a site writes it."""
    switch = state.switch
    return {"mtu": switch.mtu, "uplinks": len(switch.uplinks), "hosts": dict(state.hosts)}
