"""Base of the kinds that set a value on several hosts or clusters and restore the earlier value on deletion:
host_option, host_firewall_rule, host_graphics and cluster_option.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from bfinfra.backends.vcenter.esxi import lost_hosts
from bfinfra.backends.vcenter.esxi_settings import Noted
from bfinfra.kinds.capabilities import SETTINGS, anywhere
from bfinfra.kinds.named import nowhere
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

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

Place = tuple[str, str]
"""Name of the host or cluster, and key of the setting."""


class SettingSpec(resource.Spec):
    """The desired state of a setting."""

    thing: ClassVar[str] = "host"
    """`host` or `cluster`; the field with their names is its plural."""

    @property
    def on(self) -> tuple[str, ...]:
        """The names of the hosts or clusters."""
        return tuple(getattr(self, f"{self.thing}s"))

    @property
    @abstractmethod
    def settings(self) -> tuple[str, ...]:
        """The keys of the settings."""

    def takes(self, name: str) -> Iterator[Taken]:
        """Each setting of each host or cluster, which two resources can't both set."""
        for index, each in enumerate(self.on):
            for key in self.settings:
                yield conflict.thing(f"{self.thing}s.{index}", f"{key} of {each}", type(self).__module__)

    @abstractmethod
    def wanted(self, place: Place, context: PlanContext) -> str | Unknown:
        """The desired value as text."""


class Spec(SettingSpec):
    """The desired state of a setting of hosts."""

    hosts: Annotated[tuple[str, ...], Field(min_length=1)]
    """The hosts that get it, by their names in vCenter."""

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The settings of its hosts, which PVRDMA or vGPUs there may need."""
        yield from (Capability(SETTINGS, each) for each in self.hosts)
        for use in self.serves():
            yield from anywhere(use, self.hosts)

    def serves(self) -> tuple[str, ...]:
        """The capabilities that the setting gives VMs on these hosts."""
        return ()


@dataclass(frozen=True)
class HostValue:
    """One setting of a host or cluster. `now`: its value, None if the host or cluster has no such setting;
    `note`: bfinfra's note about it.
    """

    host: str
    moid: str
    key: str
    now: str | None
    note: HostNote | None = None
    lost: str = ""
    """Why its host is as vCenter last saw it."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The settings as they are on the hosts or clusters."""

    settings: tuple[HostValue, ...] = ()

    def last_known(self) -> str:
        """Return why its fields are last known values; "" if they are current."""
        return "; ".join(dict.fromkeys(each.lost for each in self.settings if each.lost))

    def at(self, place: Place) -> HostValue | None:
        """One setting; None if its host or cluster is not there."""
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
    """The value before bfinfra set it."""
    same: bool
    """Whether the value is the earlier one already, so that only the note is removed."""

    def title(self) -> str:
        """The title; an empty value is shown as "nothing"."""
        shown = self if self.value else replace(self, value="nothing")
        return super(PutBack, shown).title()


StepTypes = tuple[type[Set], type[Commit], type[PutBack]]
S = TypeVar("S", bound=SettingSpec)
T = TypeVar("T", bound=State)


class Settings(kind.Kind[S, T]):
    """A kind that sets values on several hosts or clusters, with a note about each in a custom attribute."""

    managed = False
    alone = True
    survey_privileges = (holds(VCENTER, *READ),)
    step_types: ClassVar[StepTypes]
    """The kind's own step classes, with their titles and the privileges that they need."""
    name: ClassVar[str]
    """The kind's name in marks."""
    prefix: ClassVar[str]
    """The beginning of its custom attributes' names; the setting's key follows."""

    def __init__(self, vcenter: VCenter, site: Site) -> None:
        self._vcenter = vcenter
        self._site = site.name

    @abstractmethod
    def noted(self, *, everyone: bool, texts: Iterable[str] = ()) -> Mapping[str, Noted]:
        """The hosts or clusters by what the site calls them, each with its notes. `texts`: the names and
        paths that the site uses. Unless `everyone`, the result may be empty if
        there is no note anywhere.
        """

    @abstractmethod
    def note(self, moid: str, attribute: str, text: str) -> None:
        """Writes a note."""

    @abstractmethod
    def forget(self, moid: str, attribute: str) -> None:
        """Removes a note."""

    @abstractmethod
    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The values as text, by id and key."""

    @abstractmethod
    def write(self, moid: str, key: str, value: str) -> None:
        """Sets a value."""

    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the notes of all hosts or clusters, then each setting that the site wants or noted. The facts
        are the names of all hosts or clusters.
        """
        texts = [text for spec in wanted.values() if spec is not None for text in spec.on]
        hosts = dict(self.noted(everyone=any(wanted.values()), texts=texts))
        places: dict[str, dict[Place, None]] = {}
        for host, found in hosts.items():
            for attribute, text in found.notes.items():
                mark = Mark.owner_in(text)
                name = mark.name_of(self._site, self.name) if mark else None
                if name and (include_unlisted or name in wanted):
                    places.setdefault(name, {})[host, attribute.removeprefix(self.prefix)] = None
        for name, spec in wanted.items():
            if spec is not None:
                places.setdefault(name, {}).update(dict.fromkeys(product(spec.on, spec.settings)))
        there = [place for each in places.values() for place in each if place[0] in hosts]
        values = self.values((hosts[host].moid for host, _ in there), (key for _, key in there))
        for host, why in self.lost({host: hosts[host].moid for host, _ in there}).items():
            hosts[host] = replace(hosts[host], lost=why)
        states = {
            name: self._state(each, hosts, values)
            for name, each in places.items()
            if any(place[0] in hosts for place in each)
        }
        return Observation(states, tuple(sorted(hosts)))

    def lost(self, moids: Mapping[str, str]) -> Mapping[str, str]:
        """Return why hosts, by name, are as vCenter last saw them; without those that it sees."""
        return {}

    looked_for: ClassVar[tuple[str, ...]] = ()
    """The settings that `describe` writes into a site; it leaves out all others."""

    def says(self, key: str, value: str) -> Mapping[str, object] | None:
        """The fields for a value in a site; None for a value that hosts have by default."""
        return None

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """One resource for all hosts that have the same value and whose notes are of the same site."""
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
                hosts[host].lost,
            )
            for host, key in places
            if host in hosts
        )
        mark = common([each.note.mark for each in settings if each.note])
        mark = mark.pending if mark and any(each.note is None for each in settings) else mark
        return self.State(mark=mark, settings=settings, **self.refers((mark.applied if mark else None) or {}))

    @classmethod
    def steps(cls, name: str, spec: S | None, state: T | None, context: PlanContext) -> Sequence[Step]:
        """One step per host or cluster and setting: set a value that differs, note what was applied, restore
        the value of a setting that left the site.
        """
        return _steps(spec, state, context, cls.step_types)

    def refers(self, applied: Mapping[str, object]) -> Mapping[str, Any]:
        """The fields of a state that refer to other resources, from what was applied."""
        return {}

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. The note is written before the value changes, and removed after the value is
        restored.
        """
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
    """A kind that sets values on several hosts."""

    def noted(self, *, everyone: bool, texts: Iterable[str] = ()) -> Mapping[str, Noted]:
        """The hosts by name, which occurs once in a vCenter, each with its notes."""
        return self._vcenter.host_settings.noted(self.prefix, everyone=everyone)

    def lost(self, moids: Mapping[str, str]) -> Mapping[str, str]:
        """Return why these hosts are as vCenter last saw them; without those that it sees."""
        return lost_hosts(self._vcenter.host_settings.connections(moids.values()), moids)

    def note(self, moid: str, attribute: str, text: str) -> None:
        """Writes a note on a host."""
        self._vcenter.hosts.set_attribute(moid, attribute, text)

    def forget(self, moid: str, attribute: str) -> None:
        """Removes a note from a host. With the last note of a setting, the definition of its custom attribute
        goes, too.
        """
        self._vcenter.hosts.drop_attribute(moid, attribute)

    @staticmethod
    def places(name: str, spec: S, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The hosts, and the root, where custom attributes are defined."""
        return {
            "hosts": tuple(Entity(f"/{datacenter}/host/*/{host}", "HostSystem") for host in spec.on),
            "definitions": (ROOT,),
        }


def _steps(
    spec: SettingSpec | None, state: State | None, context: PlanContext, types: StepTypes
) -> Sequence[Step]:
    wanted, put_back = {*product(spec.on, spec.settings)} if spec else set(), types[2]
    found = [*_setting_steps(spec, state, context, types)] if spec else []
    for each in state.settings if state else ():
        if (each.host, each.key) not in wanted and each.note and each.note.mark.site == context.mark.site:
            before = each.note.before if each.note.before is not None else each.now or ""
            change = () if each.now == before else (Change(f"{each.key} on {each.host}", each.now, before),)
            found.append(
                put_back(
                    host=each.host,
                    moid=each.moid,
                    key=each.key,
                    value=before,
                    same=each.now == before,
                    changes=change,
                )
            )
    return found


def _setting_steps(
    spec: SettingSpec, state: State | None, context: PlanContext, types: StepTypes
) -> Iterator[Step]:
    mark = context.mark.committed(spec.applied())
    changed = compare.changes(spec, state.mark if state else None)
    change_value, commit, _ = types
    for host, key in product(spec.on, spec.settings):
        each = _found(spec, (host, key), state, context)
        value = spec.wanted((host, key), context)
        field = f"{spec.thing}s.{host}" + (f".{key}" if len(spec.settings) > 1 else "")
        note = HostNote(mark, each.note.before if each.note else each.now).encode()
        at: dict[str, Any] = {"host": host, "moid": each.moid, "key": each.key, "note": note}
        if each.now != value:
            yield change_value(value=value, changes=(Change(field, each.now, value), *changed), **at)
        elif each.note is None or each.note.mark != mark:
            yield commit(changes=changed, **at)


def _found(spec: SettingSpec, place: Place, state: State | None, context: PlanContext) -> HostValue:
    """The setting as it is. Raises Refusal if it does not exist, or if another resource has set it."""
    (host, key), field = place, f"{spec.thing}s"
    each = state.at(place) if state else None
    if each is None:
        raise nowhere(spec.thing, host, field, context.facts or ())
    if each.now is None:
        raise Refusal(
            f"{host} has no {key}",
            field=field,
            why="its release of ESXi has no such setting, or the name is misspelt",
            next="correct the name",
        )
    context.mark.refuse_others(
        each.note.mark if each.note else None, f"{key} of {host} is set by another", field
    )
    return each
