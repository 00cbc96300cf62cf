"""The kind virtual_machine: observe, readiness, run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.library_items import OVF, Declared, Item
from bfinfra.backends.vcenter.places import Found, Inventory, only
from bfinfra.backends.vcenter.vm import Brief, Clone, Hardware, Vm
from bfinfra.kinds.audit import of_machines
from bfinfra.kinds.vcenter.base.machine.checks import Seen, seen
from bfinfra.kinds.vcenter.base.machine.notes import IMPORTING, MARKS, OF_ALL
from bfinfra.kinds.vcenter.base.machine.places import by_path, detailed, here, named, places_of, unread_of
from bfinfra.kinds.vcenter.base.machine.run import run
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty, pepper_of, sealed
from bfinfra.kinds.vcenter.base.machine.steps import (
    Delete,
    Discard,
    Move,
    Note,
    OnMachine,
    Relocate,
    Replace,
    Start,
    Stop,
    Write,
)
from bfinfra.kinds.vcenter.virtual_machine import checks, reported
from bfinfra.kinds.vcenter.virtual_machine.decide import decide
from bfinfra.kinds.vcenter.virtual_machine.describe import described, description
from bfinfra.kinds.vcenter.virtual_machine.devices import fitted
from bfinfra.kinds.vcenter.virtual_machine.home import folder_of, namesakes
from bfinfra.kinds.vcenter.virtual_machine.make import pair
from bfinfra.kinds.vcenter.virtual_machine.properties import look
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import GUEST, KEYS, State, VirtualMachineFacts, encoded, read
from bfinfra.kinds.vcenter.virtual_machine.steps import DeleteDisks, Deployed, Make
from bfinfra.model import kind, process
from bfinfra.model.awaited import UNNOTED, Away, absent
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.kind import Done, LastWriter, Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness, Ready, waiting
from bfinfra.model.reading import Reading
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, VCENTER, Entity, PrivilegePlaces, holds, path_in
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.survey_cache import SurveyCache
    from bfinfra.backends.vcenter import VCenter

__all__ = ["Spec", "State", "VirtualMachine"]
NAME = "virtual_machine"


class VirtualMachine(kind.Kind[Spec, State]):
    """A virtual machine, cloned from a template or deployed from a content library."""

    document = Document.PVRDMA
    followed = True
    checks = checks.CHECKS
    alone = True
    deadline = 1800
    step_types = (Make, Discard, Stop, DeleteDisks, Write, Move, Relocate, Start, Note, Delete, Replace)
    survey_privileges = (holds(VCENTER, *READ),)

    prefetch = (MARKS,)

    def __init__(self, vcenter: VCenter, cache: SurveyCache, site: Site) -> None:
        self._vcenter = vcenter
        self._cache = cache
        self._site = site
        self._around = {key: spec for key, spec in site.resources.items() if key.kind in checks.AROUND}

    def fetch(self, reading: Reading[object], wanted: Mapping[str, Spec | None]) -> list[Brief]:
        """Reads the marks of all VMs, which the other kinds of VMs use, too."""
        return self._vcenter.machines.survey(*OF_ALL)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the marks of all VMs, then the details of this site's and of those with a name that the site
        wants; templates and places if a VM is to be created.
        """
        briefs = self._cache.read(MARKS, NAME, lambda: self.fetch(MARKS, {}))
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        inventory = self._vcenter.inventory.read() if specs else Inventory()
        homes = {name: folder_of(spec, inventory) for name, spec in specs.items()}
        mine = {
            each.moid: name
            for each in briefs
            if (name := self._name(each, homes)) and (include_unlisted or name in wanted)
        }
        before = [
            mark for each in briefs if mine.get(each.moid) in specs and (mark := Mark.decode(each.mark))
        ]
        sources = named(_templates(specs, before), briefs, inventory)
        found = {each.thing.moid for each in sources.values() if isinstance(each, Found)}
        moids, keys = [*mine, *sorted(found - mine.keys())], [*KEYS, *sorted(_options(specs, before))]
        machines = self._vcenter.machines.read(moids, keys) if moids else []
        unread = unread_of(machine for machine in machines if machine.moid in mine)
        states = _states(machines, mine)
        items = self._items(specs, states)
        declared = {
            which: self._declared(item, inventory, spec)
            for spec in specs.values()
            if spec.properties and (which := pair(spec)) and (item := items.get(which))
        }
        secrets = {
            name: self._secrets(spec, states.get(name), declared)
            for name, spec in specs.items()
            if spec.properties
        }
        guests = {name: _guest(spec) for name, spec in specs.items()}
        away = {name: gone for name, (_, gone) in guests.items() if gone}
        return Observation(
            states,
            VirtualMachineFacts(
                inventory,
                detailed(sources, machines),
                items,
                {name: texts for name, (texts, _) in guests.items()},
                declared,
                secrets,
                away,
                namesakes({name: specs[name] for name in specs.keys() - states.keys()}, briefs, inventory),
                self._seen(specs, states, inventory, rooms=include_unlisted),
                self._reported(states) if include_unlisted else {},
            ),
            {name: why for name, why in unread.items() if name not in states},
        )

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every VM except templates, Bitfusion servers, and those that a vCenter extension made."""
        moids = sorted(each.moid for each in self._vcenter.machines.origins() if described(each))
        inventory = self._vcenter.inventory.read()
        for machine in here(self._vcenter.machines.read(moids, KEYS) if moids else (), inventory):
            yield description(read(machine), places_of(machine, inventory))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: VirtualMachineFacts | None) -> Iterator[Conflict]:
        """Disks that don't fit on their datastores; hosts that can't take a VM; VMs of the same name
        elsewhere; guests that don't have the address of the Linux machine that they are.
        """
        yield from checks.conflicts(wanted, states, facts or VirtualMachineFacts())

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Folder, pool, datastores and networks."""
        networks = (Entity(f"/{datacenter}/network", "Folder", propagate=True),) if spec.adapters else ()
        machines = Entity(f"/{datacenter}/vm", "Folder", propagate=True)
        root = f"{path_in(datacenter, 'host', spec.cluster)}/Resources"
        pool = Entity("/".join(filter(None, (root, spec.resource_pool))), "ResourcePool")
        stores = tuple(
            Entity(path_in(datacenter, "datastore", each), "Datastore")
            for each in sorted({spec.datastore, *(d.datastore for d in spec.disks.values() if d.datastore)})
        )
        return {
            "vapps": (machines,) if spec.properties else (),
            "disks": (machines,) if spec.disks else (),
            "stores": stores if spec.disks else (),
            "folder": (machines,),
            "migrated": (machines,),
            "half_made": (machines,) if spec.library else (),
            "firmware": (),
            "cloned": (machines,) if spec.template else (),
            "networks": networks,
            "pool": (pool,),
            "deployed": (machines,) if spec.library else (),
            "imported": (machines, pool) if spec.library else (),
            "datastore": stores,
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the VM is off as desired, or its guest runs. The note is its address."""
        if spec is None or spec.power == "off":
            return READY
        if not state.machine.on:
            return waiting("it is off")
        return (
            Readiness(Ready.READY, note=state.machine.ip)
            if state.machine.tools
            else waiting("its guest is starting")
        )

    def audit(
        self, asked: Mapping[str, tuple[State | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """The last writer of each field, from the VM's events."""
        return of_machines(self._vcenter.events, asked, lambda state: state.machine.moid)

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, as one task; a running VM is shut down before it is deleted."""
        machines = self._vcenter.machines
        match step:
            case Make(how=Clone() as clone):
                machines.clone(clone)
            case Make(how=Deployed() as wanted):
                address = f"{NAME}/{step.name}"
                hardware = sealed(wanted.hardware, wanted.properties, {}, address, self._site)
                self._deploy(replace(wanted, hardware=hardware), report)
            case DeleteDisks(moid=moid, keys=keys):
                machines.reconfigure(moid, Hardware(destroy=keys), "deleting disks", version=step.version)
            case OnMachine():
                run(machines, step, NAME, self._site)
            case _:
                raise AssertionError(step)

    def _deploy(self, wanted: Deployed, report: Report) -> None:
        """Deploys an OVF item. The deployment sets the notes; the hardware is set right after, and until then
        the VM counts as half-deployed.
        """
        machines = self._vcenter.machines
        report(Done("deploying from the library", 0))
        moid = self._vcenter.libraries.deploy(
            wanted.item,
            replace(wanted.deployment, extra={**wanted.deployment.extra, IMPORTING: process.me()}),
        )
        for made in machines.read([moid], []):
            hardware = replace(
                fitted(wanted.hardware, made),
                drop=tuple(nic.key for nic in made.nics),
                extra={**wanted.hardware.extra, IMPORTING: ""},
            )
            machines.reconfigure(moid, hardware, "the hardware of what was deployed")

    def _declared(
        self, found: tuple[Item, Vm | None], inventory: Inventory, spec: Spec
    ) -> Sequence[Declared]:
        """The properties that an OVF item declares; empty if a place for its deployment doesn't exist."""
        cluster = only(inventory.cluster(spec.cluster))
        return (
            self._vcenter.library_items.declared(found[0].id, cluster.pool)
            if cluster and found[0].type == OVF
            else ()
        )

    def _secrets(
        self, spec: Spec, state: State | None, declared: Mapping[tuple[str, str], Sequence[Declared]]
    ) -> Mapping[str, SecretProperty]:
        kept = None if state is None or state.importing else state.digests
        pepper = (
            pepper_of(self._site)
            if any(isinstance(value, Secret) for value in spec.properties.values())
            else ""
        )
        return look(spec, kept, declared.get(pair(spec), ()), pepper, state)

    def _seen(
        self, specs: Mapping[str, Spec], states: Mapping[str, State], inventory: Inventory, *, rooms: bool
    ) -> Seen:
        wanted = {**self._around, **{Key(NAME, name): spec for name, spec in specs.items()}}
        live = {Key(NAME, name): state for name, state in states.items()}
        return seen(self._vcenter, checks.asked(wanted, live, inventory), inventory, rooms=rooms)

    def _reported(self, states: Mapping[str, State]) -> Mapping[str, frozenset[str]]:
        """The addresses of guests by VM. Raises RemoteError."""
        moids = reported.asked(self._site.resources, states)
        found = self._vcenter.machines.addresses([*moids.values()]) if moids else {}
        return {name: found[moid] for name, moid in moids.items() if moid in found}

    def _items(
        self, specs: Mapping[str, Spec], states: Mapping[str, State]
    ) -> Mapping[tuple[str, str], tuple[Item, Vm | None]]:
        """The library items of the VMs that have to be created, and those before and after a change; by
        library and item name, each with its VM template.
        """
        wanted: set[tuple[str, str]] = set()
        for name, spec in specs.items():
            state = states.get(name)
            before = state.applied.get("library") if state else None
            if state is None or state.importing or before != spec.applied().get("library"):
                wanted |= {pair(spec)} if spec.library else set()
                wanted |= {(before["name"], before["item"])} if before else set()
        found = {
            pair: item
            for pair in sorted(wanted)
            if (item := self._vcenter.library_items.find(*pair)) is not None
        }
        held = {item.template for item in found.values() if item.template}
        templates = {
            machine.moid: machine
            for machine in (self._vcenter.machines.read(sorted(held), ()) if held else ())
        }
        return {pair: (item, templates.get(item.template)) for pair, item in found.items()}

    def _name(self, brief: Brief, homes: Mapping[str, str]) -> str:
        """The resource of a VM: by this site's mark, or by name and folder for another VM. `homes`: desired
        machine → id of its folder.
        """
        mark = Mark.owner_in(brief.mark)
        if mark is not None and (name := mark.name_of(self._site.name, NAME)):
            return name
        own = brief.own_name
        home = homes.get(own)
        return own if home and brief.folder and (brief.folder == home or own != brief.name) else ""


def _states(machines: Sequence[Vm], mine: Mapping[str, str]) -> dict[str, State]:
    """The states of this site's machines, and of those that have the name and the place of one."""
    states: dict[str, State] = {}
    for machine in machines:
        if machine.moid in mine and not machine.unread and not by_path(machine):
            state, name = read(machine), mine[machine.moid]
            if name not in states or (state.mark is not None and states[name].mark is None):
                states[name] = state
    return states


def _options(specs: Mapping[str, Spec], before: Sequence[Mark]) -> set[str]:
    """The further options that the site names, and those that it named before."""
    return {key for spec in specs.values() for key in spec.extra} | {
        key for mark in before for key in (mark.applied or {}).get("extra") or ()
    }


def _templates(specs: Mapping[str, Spec], before: Sequence[Mark]) -> set[str]:
    """The templates that the site names, and those that its machines were made from."""
    texts = {spec.template for spec in specs.values()} | {(m.applied or {}).get("template") for m in before}
    return {text for text in texts if text}


def _guest(spec: Spec) -> tuple[Mapping[str, str] | str, Away | None]:
    """Keys and values of guestinfo, or why a file can't be read; and the first file that doesn't
    exist yet.
    """
    found: dict[str, str] = {}
    gone: Away | None = None
    for field, file in spec.files().items():
        if problem := absent(file, spec.awaits[field], UNNOTED):
            gone = gone or (field, problem)
            continue
        try:
            found[GUEST[field.partition(".")[2]]] = encoded(file.path.read_bytes())
        except OSError as error:
            return f"{file.path}: {error.strerror}", None
    return found, gone
