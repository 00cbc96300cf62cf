"""VMkernel adapters of hosts on a distributed port group, with one address per host. (RDG for PVRDMA, table
of host networks: vmk3.)
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from bfinfra.backends.vcenter.esxi import lost_hosts
from bfinfra.backends.vcenter.esxi_settings import Noted, Vmk, VmkPlan
from bfinfra.backends.vcenter.networks import Networks, Switch
from bfinfra.backends.vcenter.places import only
from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.capabilities import SETTINGS
from bfinfra.kinds.vcenter.base import frames
from bfinfra.kinds.vcenter.base.host_note import RIGHTS, HostNote
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.conflict import Conflict, Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, common
from bfinfra.model.order import Capability, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, Right, Use, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

PREFIX = ATTRIBUTES["vmkernel_adapter"]
DHCP = "dhcp"
NETWORK = (holds("hosts", "Host.Config.Network"), *RIGHTS)


def _address(text: str) -> str:
    if text != DHCP and ("/" not in text or ipaddress.ip_interface(text).version != 4):
        raise ValueError("expected an IPv4 address with its prefix, such as 192.168.0.24/24, or dhcp")
    if why := conflict.unfit(text):
        raise ValueError(why)
    return text


Address = Annotated[str, AfterValidator(_address)]


class Spec(resource.Spec):
    """The desired state of the adapters on one port group."""

    port_group: Annotated[str, Ref("port_group")]
    """Port group that they are on. A host has one of these adapters there."""
    hosts: Annotated[dict[str, Address], Field(min_length=1)]
    """The hosts, by their names in vCenter, and the address of each: 192.168.0.24/24, or dhcp."""
    mtu: Annotated[int, Field(ge=1280, le=9000)] = 1500
    """Largest frame, in bytes; at most the switch's."""

    def takes(self, name: str) -> Iterator[Taken]:
        """Its addresses, and the one adapter of each host on the port group."""
        for host, address in self.hosts.items():
            yield conflict.thing(
                f"hosts.{host}", f"the VMkernel adapter of {host} on {self.port_group}", "VMkernel"
            )
            yield from conflict.address(f"hosts.{host}", address, on=(self.port_group, True))

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterator[Conflict]:
        """An mtu that is larger than the one that the site writes for the switch."""
        for key, spec in mine.items():
            yield from frames.unfit_as_written(key, spec.mtu, spec.port_group, site)

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The adapter of each host."""
        return (Capability(SETTINGS, each) for each in self.hosts)


@dataclass(frozen=True)
class VmkernelFacts:
    """The names of all hosts. `switches`: port group → the switch that has it or will, as it was found."""

    hosts: tuple[str, ...] = ()
    switches: Mapping[str, Switch] = field(default_factory=dict)


@dataclass(frozen=True)
class Adapter:
    """The adapter of one host. `vmk`: None if the host has none on the port group; `note`: what bfinfra wrote
    about it.
    """

    moid: str
    vmk: Vmk | None
    note: HostNote | None
    lost: str = ""
    """Why its host is as vCenter last saw it."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The adapters of the hosts, by host name."""

    port_group: Annotated[str, Ref("port_group")]
    adapters: Mapping[str, Adapter]

    def last_known(self) -> str:
        """Return why its fields are last known values; "" if they are current."""
        return "; ".join(dict.fromkeys(each.lost for each in self.adapters.values() if each.lost))

    @property
    def devices(self) -> dict[str, str]:
        """Host → vmkN, for adapters that exist."""
        return {host: each.vmk.device for host, each in self.adapters.items() if each.vmk}


@dataclass(frozen=True, kw_only=True)
class _OnHost(Step):
    rights: ClassVar[tuple[Right, ...]] = NETWORK

    host: str
    moid: str
    attribute: str


@dataclass(frozen=True, kw_only=True)
class Add(_OnHost):
    """add a VMkernel adapter to {host}"""

    address: str
    plan: VmkPlan | Unknown
    note: str

    def title(self) -> str:
        """The title, with its address."""
        return f"add a VMkernel adapter with {self.address} to {self.host}"


@dataclass(frozen=True, kw_only=True)
class Adjust(_OnHost):
    """change {device} of {host}"""

    device: str
    address: str | None
    mtu: int | None
    """What is to change; None stays as it is."""
    note: str


@dataclass(frozen=True, kw_only=True)
class Commit(_OnHost):
    """note on {host} what was applied"""

    rights = RIGHTS
    note: str


@dataclass(frozen=True, kw_only=True)
class Remove(_OnHost):
    """remove the VMkernel adapter {device} from {host}"""

    destructive = True
    uses = (Use.DESTROY,)
    device: str


class VmkernelAdapter(kind.Kind[Spec, State]):
    """VMkernel adapters of hosts on one port group."""

    managed = False
    document = Document.PVRDMA
    undescribed = "an adapter that bfinfra did not make is refused, so none can be adopted"
    step_types = (Add, Adjust, Commit, Remove)
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
        """Reads the notes of all hosts; then the adapters, if the site wants or noted some."""
        hosts = self._vcenter.host_settings.noted(PREFIX, everyone=any(wanted.values()))
        groups, on = self._noted(hosts, wanted, include_unlisted=include_unlisted)
        for name, spec in wanted.items():
            if spec is not None:
                groups[name] = spec.port_group
                on.setdefault(name, {}).update(dict.fromkeys(host for host in spec.hosts if host in hosts))
        there = {host: hosts[host].moid for each in on.values() for host in each}
        vmks = self._vcenter.host_settings.vmks(there.values())
        lost = lost_hosts(self._vcenter.host_settings.connections(there.values()), there)
        states = {}
        for name, each in on.items():
            need = needs.get(Key("port_group", groups[name]))
            key = need.state.key if need is not None and need.state is not None else None
            found = {
                host: replace(
                    _adapter(hosts[host], groups[name], key, vmks.get(hosts[host].moid, ())),
                    lost=lost.get(host, ""),
                )
                for host in each
            }
            if found:
                states[name] = _state(groups[name], found)
        return Observation(states, VmkernelFacts(tuple(sorted(hosts)), self._switches(wanted, needs)))

    def _switches(
        self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, ResolvedRef]
    ) -> Mapping[str, Switch]:
        """The switches of the port groups that the site names; read only if one is still to be made."""
        groups = {
            spec.port_group: needs.get(Key("port_group", spec.port_group)) for spec in wanted.values() if spec
        }
        made = {text: need.state.on for text, need in groups.items() if need and need.state is not None}
        later = {
            text: need.spec.switch for text, need in groups.items() if need and need.spec and text not in made
        }
        there = self._vcenter.switches.read(context=False) if later else Networks()
        homes = {each.moid: each for each in there.switches}
        return made | {
            text: homes[at.moid] for text, name in later.items() if (at := only(there.switch(name)))
        }

    def _noted(
        self, hosts: Mapping[str, Noted], wanted: Mapping[str, Spec | None], *, include_unlisted: bool
    ) -> tuple[dict[str, str], dict[str, dict[str, None]]]:
        """The port group and the hosts in the notes, by the resources that the notes name."""
        groups: dict[str, str] = {}
        on: dict[str, dict[str, None]] = {}
        for host, found in hosts.items():
            for attribute, text in found.notes.items():
                mark = Mark.owner_in(text)
                name = mark.name_of(self._site, "vmkernel_adapter") if mark else None
                if name and (include_unlisted or name in wanted):
                    groups[name] = attribute.removeprefix(PREFIX)
                    on.setdefault(name, {})[host] = None
        return groups, on

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: VmkernelFacts | None) -> Iterator[Conflict]:
        """Frames that the switch doesn't pass, where the site doesn't write its mtu; hosts not on it."""
        for key, spec in wanted.items() if facts else ():
            if isinstance(spec, Spec) and facts:
                state = states.get(key)
                there, mark = (state.adapters, state.mark) if isinstance(state, State) else ({}, None)
                new = {host: each.moid for host, each in there.items() if host in spec.hosts and not each.vmk}
                if new or spec.hosts.keys() != there.keys() or frames.sets(spec, mark):
                    yield from frames.unfit(key, spec.mtu, spec.port_group, wanted, facts.switches)
                yield from frames.off_the_switch(key, new, spec.port_group, wanted, facts.switches)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """One step per host."""
        found: list[Step] = []
        if spec is not None:
            if (
                state is not None
                and state.port_group != spec.port_group
                and any(each.note for each in state.adapters.values())
            ):
                raise Refusal(
                    f"the adapters are on {state.port_group}",
                    field="port_group",
                    why="an adapter can't move to another port group",
                    next="write the new ones under another name, and delete these",
                )
            found += _steps(spec, state, context)
        for host, each in state.adapters.items() if state else ():
            ours = each.note is not None and each.note.mark.site == context.mark.site
            if ours and host not in (spec.hosts if spec else ()):
                device = each.vmk.device if each.vmk else ""
                assert state is not None
                found.append(
                    Remove(
                        host=host,
                        moid=each.moid,
                        attribute=PREFIX + state.port_group,
                        device=device,
                        changes=(Change(f"hosts.{host}", device or None, None),),
                    )
                )
        return found

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The hosts, and the root, where custom attributes are defined."""
        return {
            "hosts": tuple(Entity(f"/{datacenter}/host/*/{host}", "HostSystem") for host in spec.hosts),
            "definitions": (ROOT,),
        }

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. The note is written before the change; the adapter is deleted before its note."""
        hosts, settings = self._vcenter.hosts, self._vcenter.host_settings
        match step:
            case Add(plan=VmkPlan() as plan):
                hosts.set_attribute(step.moid, step.attribute, step.note)
                settings.add_vmk(step.moid, plan)
            case Adjust(address=address, mtu=mtu):
                hosts.set_attribute(step.moid, step.attribute, step.note)
                settings.change_vmk(step.moid, step.device, address=address, mtu=mtu)
            case Commit():
                hosts.set_attribute(step.moid, step.attribute, step.note)
            case Remove():
                if step.device:
                    settings.remove_vmk(step.moid, step.device)
                hosts.drop_attribute(step.moid, step.attribute)
            case _:
                raise AssertionError(step)


def _adapter(host: Noted, group: str, key: str | None, vmks: Sequence[Vmk]) -> Adapter:
    return Adapter(
        host.moid,
        next((vmk for vmk in vmks if key and vmk.group == key), None),
        HostNote.decode(host.notes.get(PREFIX + group, "")),
    )


def _state(group: str, adapters: Mapping[str, Adapter]) -> State:
    mark = common([each.note.mark for each in adapters.values() if each.note])
    return State(
        mark=mark.pending if mark and any(each.note is None for each in adapters.values()) else mark,
        port_group=group,
        adapters=adapters,
    )


def _steps(spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    mark = context.mark.committed(spec.applied())
    note = HostNote(mark).encode()
    changed = compare.changes(spec, state.mark if state else None)
    need = context.needs["port_group"]
    for host, address in spec.hosts.items():
        each = _found(host, state, context)
        key, uuid = need.get("key"), need.get("uuid")
        plan = key if isinstance(key, Unknown) else VmkPlan(str(uuid), str(key), address, spec.mtu)
        at: dict[str, Any] = {
            "host": host,
            "moid": each.moid,
            "attribute": PREFIX + spec.port_group,
            "note": note,
        }
        if each.vmk is None:
            yield Add(
                address=address, plan=plan, changes=(Change(f"hosts.{host}", None, address), *changed), **at
            )
            continue
        moved = compare.drift(
            spec,
            each.note.mark if each.note else None,
            {"hosts": {host: each.vmk.address}, "mtu": each.vmk.mtu},
            {"hosts": {host: address}, "mtu": spec.mtu},
        )
        if moved:
            yield Adjust(
                device=each.vmk.device,
                address=address if each.vmk.address != address else None,
                mtu=spec.mtu if compare.touches(moved, "mtu") else None,
                changes=(*moved, *changed),
                **at,
            )
        elif each.note is None or each.note.mark != mark:
            yield Commit(changes=changed, **at)


def _found(host: str, state: State | None, context: PlanContext) -> Adapter:
    """The adapter of a host. Raises Refusal if there is no such host, or if the adapter there is
    another's.
    """
    each = state.adapters.get(host) if state else None
    if each is None:
        raise Refusal(
            f"there is no host {host}",
            field=f"hosts.{host}",
            why="vCenter doesn't know it",
            next=nearest(host, context.facts.hosts if context.facts else ()),
        )
    mark = each.note.mark if each.note else None
    if each.vmk is not None and mark is None:
        raise Refusal(
            f"{host} has {each.vmk.device} on the port group already",
            field=f"hosts.{host}",
            why="bfinfra did not make it",
            next="remove it, or leave the host out",
        )
    context.mark.refuse_others(mark, f"the adapter of {host} on the port group is another's", f"hosts.{host}")
    return each
