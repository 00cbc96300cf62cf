"""One value that is set on several hosts, and put back as it was: what host_option and host_firewall_rule
share.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from bfinfra.backends.vcenter.esxi_settings import NotedHost
from bfinfra.kinds.capabilities import SETTINGS, anywhere
from bfinfra.kinds.vcenter.base.host_note import HostNote
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description, free_name
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, common
from bfinfra.model.order import Capability, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, Use, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

Place = tuple[str, str]
"""Host and key."""


class Spec(resource.Spec):
    """What both kinds have in common."""

    hosts: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that it is set on, by their names in vCenter."""

    @property
    @abstractmethod
    def setting(self) -> str:
        """Its name on the host."""

    def takes(self, name: str) -> Iterator[Taken]:
        """The setting of each host: it has one value."""
        for index, host in enumerate(self.hosts):
            yield conflict.thing(f"hosts.{index}", f"{self.setting} of {host}", type(self).__module__)

    @abstractmethod
    def wanted(self, host: str, context: PlanContext) -> str | Unknown:
        """The value as text."""

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """That it is set, and what that is good for."""
        yield from (Capability(SETTINGS, each) for each in self.hosts)
        for use in self.serves():
            yield from anywhere(use, self.hosts)

    def serves(self) -> tuple[str, ...]:
        """What machines on the hosts need it for."""
        return ()


@dataclass(frozen=True)
class Setting:
    """One value on one host. `now`: None where the host has no such setting; `note`: what bfinfra wrote about
    it.
    """

    host: str
    moid: str
    key: str
    now: str | None
    note: HostNote | None = None


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """What the hosts say."""

    settings: tuple[Setting, ...] = ()

    def at(self, place: Place) -> Setting | None:
        """The setting of a key on a host."""
        return next((each for each in self.settings if (each.host, each.key) == place), None)


@dataclass(frozen=True, kw_only=True)
class Set(Step):
    """set {key} on {host} to {value}"""

    host: str
    moid: str
    key: str
    value: str | Unknown
    note: str


@dataclass(frozen=True, kw_only=True)
class Seal(Step):
    """note on {host} what was applied of {key}"""

    host: str
    moid: str
    key: str
    note: str


@dataclass(frozen=True, kw_only=True)
class PutBack(Step):
    """put {key} on {host} back to {value}"""

    uses = (Use.APPLY, Use.DESTROY)

    host: str
    moid: str
    key: str
    value: str
    """As it was before."""
    same: bool
    """It is so already, and only the note goes."""


S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=State)


class HostSettings(kind.Kind[S, T]):
    """A kind that sets one value on several hosts, each with a note in a custom attribute."""

    managed = False
    alone = True
    survey_privileges = (holds(VCENTER, *READ),)
    name: ClassVar[str]
    """The kind's name, as marks have it."""
    prefix: ClassVar[str]
    """How its custom attributes are called, before the key."""

    def __init__(self, vcenter: VCenter, site: Site) -> None:
        self._vcenter = vcenter
        self._site = site.name

    @abstractmethod
    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """By host id and key, as text."""

    @abstractmethod
    def write(self, moid: str, key: str, value: str) -> None:
        """Set it."""

    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """The notes on all hosts, then the values where one is wanted or noted."""
        hosts = self._vcenter.host_settings.noted(self.prefix, everyone=any(wanted.values()))
        places: dict[str, dict[Place, None]] = {}
        for host, found in hosts.items():
            for attribute, text in found.notes.items():
                mark = Mark.decode(text)
                name = mark.name_of(self._site, self.name) if mark else None
                if name and (include_unlisted or name in wanted):
                    places.setdefault(name, {})[host, attribute.removeprefix(self.prefix)] = None
        for name, spec in wanted.items():
            if spec is not None:
                places.setdefault(name, {}).update(dict.fromkeys((host, spec.setting) for host in spec.hosts))
        there = [place for each in places.values() for place in each if place[0] in hosts]
        values = self.values((hosts[host].moid for host, _ in there), (key for _, key in there))
        states = {
            name: self._state(each, hosts, values)
            for name, each in places.items()
            if any(place[0] in hosts for place in each)
        }
        return Observation(states, tuple(sorted(hosts)))

    looked_for: ClassVar[tuple[str, ...]] = ()
    """The settings that sites are described by: of what a host has besides, a site says nothing."""

    def says(self, key: str, value: str) -> Mapping[str, object] | None:
        """What a site would say of a value; None where it is what hosts have anyway."""
        return None

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """One resource for all hosts that have the same value, and are looked after by the same site."""
        hosts = self._vcenter.host_settings.noted(self.prefix, everyone=True)
        values = self.values((each.moid for each in hosts.values()), self.looked_for)
        alike: dict[tuple[str, str, str], list[Place]] = {}
        for host, found in sorted(hosts.items()):
            for key, value in sorted(values.get(found.moid, {}).items()):
                owner = Mark.site_in(found.notes.get(self.prefix + key)) or ""
                alike.setdefault((key, value, owner), []).append((host, key))
        taken: dict[str, object] = {}
        for (key, value, _), places in sorted(alike.items()):
            if (fields := self.says(key, value)) is not None:
                name = free_name(f"{key} {value}", taken)
                taken[name] = fields
                state = self._state(places, hosts, values)
                yield Description(name, {**fields, "hosts": [host for host, _ in places]}, state)

    def _state(
        self, places: Iterable[Place], hosts: Mapping[str, NotedHost], values: Mapping[str, Mapping[str, str]]
    ) -> Any:
        settings = tuple(
            Setting(
                host,
                hosts[host].moid,
                key,
                values.get(hosts[host].moid, {}).get(key),
                HostNote.decode(hosts[host].notes.get(self.prefix + key, "")),
            )
            for host, key in places
            if host in hosts
        )
        mark = common([each.note.mark for each in settings if each.note])
        mark = mark.open if mark and any(each.note is None for each in settings) else mark
        return self.State(mark=mark, settings=settings, **self.refers((mark.applied if mark else None) or {}))

    def refers(self, applied: Mapping[str, Any]) -> Mapping[str, Any]:
        """The references of a state, out of what was applied."""
        return {}

    @staticmethod
    def places(name: str, spec: S, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The hosts; custom attributes are defined at the root."""
        return {
            "hosts": tuple(Entity(f"/{datacenter}/host/*/{host}", "HostSystem") for host in spec.hosts),
            "definitions": (ROOT,),
        }

    def run(self, step: Step, report: Report) -> None:
        """The note first, then the change that it is about; the change back first, then the note."""
        hosts = self._vcenter.hosts
        match step:
            case Set(value=str() as value):
                hosts.set_attribute(step.moid, self.prefix + step.key, step.note)
                self.write(step.moid, step.key, value)
            case Seal():
                hosts.set_attribute(step.moid, self.prefix + step.key, step.note)
            case PutBack():
                if not step.same:
                    self.write(step.moid, step.key, step.value)
                hosts.drop_attribute(step.moid, self.prefix + step.key)
            case _:
                raise AssertionError(step)


@dataclass(frozen=True)
class Steps:
    """A kind's own step classes, which say what they take."""

    set: type[Set]
    seal: type[Seal]
    back: type[PutBack]


def steps(spec: Spec | None, state: State | None, context: PlanContext, classes: Steps) -> Sequence[Step]:
    """Set where it differs, note what was applied, put back where it isn't wanted any more."""
    wanted = {(host, spec.setting) for host in spec.hosts} if spec else set()
    found = [*_settle(spec, state, context, classes)] if spec else []
    for each in state.settings if state else ():
        if (each.host, each.key) not in wanted and each.note and each.note.mark.site == context.mark.site:
            before = each.note.before if each.note.before is not None else each.now or ""
            change = () if each.now == before else (Change(f"{each.key} on {each.host}", each.now, before),)
            found.append(
                classes.back(
                    host=each.host,
                    moid=each.moid,
                    key=each.key,
                    value=before,
                    same=each.now == before,
                    changes=change,
                )
            )
    return found


def _settle(spec: Spec, state: State | None, context: PlanContext, classes: Steps) -> Iterator[Step]:
    mark = context.mark.seal(spec.applied())
    changed = compare.changes(spec, state.mark if state else None)
    for host in spec.hosts:
        each = _found(spec, host, state, context)
        value = spec.wanted(host, context)
        note = HostNote(mark, each.note.before if each.note else each.now).encode()
        at: dict[str, Any] = {"host": host, "moid": each.moid, "key": each.key, "note": note}
        if each.now != value:
            yield classes.set(value=value, changes=(Change(f"hosts.{host}", each.now, value), *changed), **at)
        elif each.note is None or each.note.mark != mark:
            yield classes.seal(changes=changed, **at)


def _found(spec: Spec, host: str, state: State | None, context: PlanContext) -> Setting:
    """What is to be set. Refusal where there is no such host or setting, or another resource has set it."""
    each = state.at((host, spec.setting)) if state else None
    if each is None:
        raise Refusal(
            f"there is no host {host}",
            field="hosts",
            why="vCenter doesn't know it",
            next=nearest(host, context.facts or ()),
        )
    if each.now is None:
        raise Refusal(
            f"{host} has no {spec.setting}",
            field="hosts",
            why="its release does not know it, or its name is another",
            next="correct the name",
        )
    context.mark.refuse_others(
        each.note.mark if each.note else None, f"{spec.setting} of {host} is set by another", "hosts"
    )
    return each
