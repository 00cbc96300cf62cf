"""Values that are set on several hosts or clusters, and put back as they were: what host_option,
host_firewall_rule, host_graphics and cluster_option share.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from bfinfra.backends.vcenter.esxi_settings import Noted
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
"""Host or cluster, and key."""


class SettingSpec(resource.Spec):
    """What the kinds have in common."""

    thing: ClassVar[str] = "host"
    """What it is set on; the field that names them is its plural."""

    @property
    def on(self) -> tuple[str, ...]:
        """The names of those that it is set on."""
        return tuple(getattr(self, f"{self.thing}s"))

    @property
    @abstractmethod
    def settings(self) -> tuple[str, ...]:
        """Their names there."""

    def takes(self, name: str) -> Iterator[Taken]:
        """The settings of each: they have one value."""
        for index, each in enumerate(self.on):
            for key in self.settings:
                yield conflict.thing(f"{self.thing}s.{index}", f"{key} of {each}", type(self).__module__)

    @abstractmethod
    def wanted(self, place: Place, context: PlanContext) -> str | Unknown:
        """The value as text."""


class Spec(SettingSpec):
    """The same on hosts."""

    hosts: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that it is set on, by their names in vCenter."""

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """That it is set, and what that is good for."""
        yield from (Capability(SETTINGS, each) for each in self.hosts)
        for use in self.serves():
            yield from anywhere(use, self.hosts)

    def serves(self) -> tuple[str, ...]:
        """What machines on the hosts need it for."""
        return ()


@dataclass(frozen=True)
class HostValue:
    """One value on a host or cluster. `now`: None where it has no such setting; `note`: what bfinfra wrote
    about it.
    """

    host: str
    moid: str
    key: str
    now: str | None
    note: HostNote | None = None


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """What the hosts or clusters say."""

    settings: tuple[HostValue, ...] = ()

    def at(self, place: Place) -> HostValue | None:
        """The setting of a key on one of them."""
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
class Commit(Step):
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

    def title(self) -> str:
        """Empty values can't be seen."""
        shown = self if self.value else replace(self, value="nothing")
        return super(PutBack, shown).title()


S = TypeVar("S", bound=SettingSpec)
T = TypeVar("T", bound=State)


class Settings(kind.Kind[S, T]):
    """A kind that sets values on several hosts or clusters, each with a note in a custom attribute."""

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
    def noted(self, *, everyone: bool) -> Mapping[str, Noted]:
        """Those that have notes, by name; unless `everyone`, none where nothing is noted anywhere."""

    @abstractmethod
    def note(self, moid: str, attribute: str, text: str) -> None:
        """Write a note."""

    @abstractmethod
    def forget(self, moid: str, attribute: str) -> None:
        """Take it away."""

    @abstractmethod
    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """By id and key, as text."""

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
        """The notes on all, then the values where one is wanted or noted."""
        hosts = self.noted(everyone=any(wanted.values()))
        places: dict[str, dict[Place, None]] = {}
        for host, found in hosts.items():
            for attribute, text in found.notes.items():
                mark = Mark.decode(text)
                name = mark.name_of(self._site, self.name) if mark else None
                if name and (include_unlisted or name in wanted):
                    places.setdefault(name, {})[host, attribute.removeprefix(self.prefix)] = None
        for name, spec in wanted.items():
            if spec is not None:
                places.setdefault(name, {}).update(dict.fromkeys(product(spec.on, spec.settings)))
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
        self, places: Iterable[Place], hosts: Mapping[str, Noted], values: Mapping[str, Mapping[str, str]]
    ) -> Any:
        settings = tuple(
            HostValue(
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
        mark = mark.pending if mark and any(each.note is None for each in settings) else mark
        return self.State(mark=mark, settings=settings, **self.refers((mark.applied if mark else None) or {}))

    def refers(self, applied: Mapping[str, Any]) -> Mapping[str, Any]:
        """The references of a state, out of what was applied."""
        return {}

    def run(self, step: Step, report: Report) -> None:
        """The note first, then the change that it is about; the change back first, then the note."""
        match step:
            case Set(value=str() as value):
                self.note(step.moid, self.prefix + step.key, step.note)
                self.write(step.moid, step.key, value)
            case Commit():
                self.note(step.moid, self.prefix + step.key, step.note)
            case PutBack():
                if not step.same:
                    self.write(step.moid, step.key, step.value)
                self.forget(step.moid, self.prefix + step.key)
            case _:
                raise AssertionError(step)


class HostSettings(Settings[S, T]):
    """The same on hosts."""

    def noted(self, *, everyone: bool) -> Mapping[str, Noted]:
        """On hosts."""
        return self._vcenter.host_settings.noted(self.prefix, everyone=everyone)

    def note(self, moid: str, attribute: str, text: str) -> None:
        """On a host."""
        self._vcenter.hosts.set_attribute(moid, attribute, text)

    def forget(self, moid: str, attribute: str) -> None:
        """The last one takes the attribute's definition along."""
        self._vcenter.hosts.drop_attribute(moid, attribute)

    @staticmethod
    def places(name: str, spec: S, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The hosts; custom attributes are defined at the root."""
        return {
            "hosts": tuple(Entity(f"/{datacenter}/host/*/{host}", "HostSystem") for host in spec.on),
            "definitions": (ROOT,),
        }


@dataclass(frozen=True)
class Steps:
    """A kind's own step classes, which say what they take."""

    set: type[Set]
    committed: type[Commit]
    back: type[PutBack]


def steps(
    spec: SettingSpec | None, state: State | None, context: PlanContext, classes: Steps
) -> Sequence[Step]:
    """Set where it differs, note what was applied, put back where it isn't wanted any more."""
    wanted = {*product(spec.on, spec.settings)} if spec else set()
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


def _settle(spec: SettingSpec, state: State | None, context: PlanContext, classes: Steps) -> Iterator[Step]:
    mark = context.mark.committed(spec.applied())
    changed = compare.changes(spec, state.mark if state else None)
    for host, key in product(spec.on, spec.settings):
        each = _found(spec, (host, key), state, context)
        value = spec.wanted((host, key), context)
        field = f"{spec.thing}s.{host}" + (f".{key}" if len(spec.settings) > 1 else "")
        note = HostNote(mark, each.note.before if each.note else each.now).encode()
        at: dict[str, Any] = {"host": host, "moid": each.moid, "key": each.key, "note": note}
        if each.now != value:
            yield classes.set(value=value, changes=(Change(field, each.now, value), *changed), **at)
        elif each.note is None or each.note.mark != mark:
            yield classes.committed(changes=changed, **at)


def _found(spec: SettingSpec, place: Place, state: State | None, context: PlanContext) -> HostValue:
    """What is to be set. Refusal where it is not there, or another resource has set it."""
    (host, key), field = place, f"{spec.thing}s"
    each = state.at(place) if state else None
    if each is None:
        raise Refusal(
            f"there is no {spec.thing} {host}",
            field=field,
            why="vCenter doesn't know it",
            next=nearest(host, context.facts or ()),
        )
    if each.now is None:
        raise Refusal(
            f"{host} has no {key}",
            field=field,
            why="its release does not know it, or its name is another",
            next="correct the name",
        )
    context.mark.refuse_others(
        each.note.mark if each.note else None, f"{key} of {host} is set by another", field
    )
    return each
